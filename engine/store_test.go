package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

const name = "jobs/nightly"

// do carries out a request, which must be granted if want is 0, and refused with the code want if not.
func do(t *testing.T, a lease.Authority, req lease.Request, want lease.Code) lease.Result {
	t.Helper()
	res, err := a.Do(context.Background(), name, req)
	if lease.CodeOf(err) != want || want == 0 && err != nil {
		t.Fatalf("%v: %v, want code %v", req.Action, err, want)
	}
	return res
}

// sure reports whether MinRemaining is less than most by less than passed/400, to allow for the drift of
// two clocks.
func sure(res lease.Result, most, passed time.Duration) bool {
	return res.MinRemaining < most && res.MinRemaining > most-passed/400
}

// SPEC S: a Store without its own clock passes the tests for stores in a bubble.
func TestStoreConforms(t *testing.T) {
	var e *fake
	var clock *leasefault.Clock
	leasetest.TestStore(t, func(t testing.TB) lease.Store {
		e, clock = newFake(), leasefault.NewClock()
		return newStore(t, e, engine.Options{Clock: clock})
	}, &leasetest.Options{
		Bubble: true,
		Can:    leasetest.Everything &^ leasetest.CanTellTime,
		Store: leasetest.StoreHooks{
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Store {
				return newStore(t, linkedFake{newFake(), transmit}, engine.Options{})
			},
			LoseWatches: func(testing.TB, lease.Store) { e.loseWatches() },
			StepClock:   func(_ testing.TB, _ lease.Store, d time.Duration) { clock.Step(d) },
			Corrupt:     func(_ testing.TB, _ lease.Store, name string) { e.spoil(name) },
		},
	})
}

// The small store of the example passes the tests for stores, too.
func TestExampleConforms(t *testing.T) {
	leasetest.TestStore(t, func(t testing.TB) lease.Store {
		return newStore(t, &shelf{entries: map[string]engine.Entry{}}, engine.Options{Gate: engine.NewGate(64)})
	}, &leasetest.Options{
		Bubble: true,
		Can:    leasetest.Everything &^ leasetest.CanTellTime,
	})
}

// A linkedFake sends its loads, opens and swaps through transmit.
type linkedFake struct {
	*fake
	transmit leasetest.Transmit
}

// send sends one request to the engine and returns the answer. An error of the engine is an answer.
func (e linkedFake) send(ctx context.Context, exchange func() (engine.Entry, error)) (found engine.Entry, err error) {
	lost := e.transmit(ctx, func() error {
		found, err = exchange()
		return nil
	})
	if lost != nil {
		return engine.Entry{}, lost
	}
	return found, err
}

func (e linkedFake) Load(ctx context.Context, name string) (engine.Entry, error) {
	return e.send(ctx, func() (engine.Entry, error) { return e.fake.Load(ctx, name) })
}

func (e linkedFake) Open(ctx context.Context, name string) (engine.Entry, error) {
	return e.send(ctx, func() (engine.Entry, error) { return e.fake.Open(ctx, name) })
}

func (e linkedFake) Swap(ctx context.Context, name, old string, next engine.Retained) (engine.Entry, error) {
	return e.send(ctx, func() (engine.Entry, error) { return e.fake.Swap(ctx, name, old, next) })
}

// List is one exchange.
func (e linkedFake) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return func(yield func(engine.NamedEntry, error) bool) {
		lost := e.transmit(ctx, func() error { return nil })
		if lost != nil {
			yield(engine.NamedEntry{}, lost)
			return
		}
		e.fake.List(ctx, prefix)(yield)
	}
}

// A far is a client whose loads reach the engine with a delay.
type far struct{ *engine.Store }

func (f far) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	time.Sleep(time.Millisecond)
	return f.Store.Load(ctx, name)
}

// SPEC S: two clients of one engine pass the tests for stores. In the engine, every write raises the epoch
// of unknown names. One client is slow.
func TestClientsConform(t *testing.T) {
	var e *fake
	leasetest.TestStore(t, func(t testing.TB) lease.Store {
		e = newFake()
		return newStore(t, e, engine.Options{})
	}, &leasetest.Options{
		Bubble: true,
		Slack:  100 * time.Millisecond,
		Can:    leasetest.Everything &^ leasetest.CanTellTime,
		Store: leasetest.StoreHooks{
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Store {
				e = newFake()
				return newStore(t, linkedFake{e, transmit}, engine.Options{})
			},
			Another: func(t testing.TB, _ lease.Store) lease.Store { return far{newStore(t, e, engine.Options{})} },
		},
	})
}

// SPEC A: two clients of one engine pass the tests for authorities, both with the authority of the Store
// and with lease.NewAuthority.
func TestAuthoritiesConform(t *testing.T) {
	for what, over := range map[string]func(*engine.Store) lease.Authority{
		"own":              func(s *engine.Store) lease.Authority { return s.Authority() },
		"of package lease": func(s *engine.Store) lease.Authority { return lease.NewAuthority(s) },
	} {
		t.Run(what, func(t *testing.T) {
			var e *fake
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority {
				e = newFake()
				return over(newStore(t, e, engine.Options{}))
			}, &leasetest.Options{
				Bubble: true,
				Can:    leasetest.Everything &^ leasetest.CanTellTime,
				Authority: leasetest.AuthorityHooks{
					Another: func(t testing.TB, _ lease.Authority) lease.Authority { return over(newStore(t, e, engine.Options{})) },
					Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
						e = newFake()
						return over(newStore(t, linkedFake{e, transmit}, engine.Options{}))
					},
					Corrupt: func(_ testing.TB, _ lease.Authority, name string) { e.spoil(name) },
				},
			})
		})
	}
}

// When a Store reads a lease for the first time, it starts the countdown, even if the clocks of other
// processes show another time of day.
func TestCountsFromFirstObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, early, late := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		do(t, holder.Authority(), acquire(idA, 10*time.Second), 0)
		if res := do(t, early.Authority(), acquire(idB, time.Second), lease.ErrHeldByOther); res.MaxRemaining() != 10*time.Second || res.MinRemaining != 0 {
			t.Errorf("at the first observation: remaining %v, sure %v", res.MaxRemaining(), res.MinRemaining)
		}
		time.Sleep(8 * time.Second)
		if res := do(t, late.Authority(), acquire(idB, time.Second), lease.ErrHeldByOther); res.MaxRemaining() != 10*time.Second {
			t.Errorf("a newcomer must wait for the whole duration, not %v", res.MaxRemaining())
		}
		if res := do(t, holder.Authority(), acquire(idB, time.Second), lease.ErrHeldByOther); res.MaxRemaining() != 2*time.Second || !sure(res, 2*time.Second, 8*time.Second) {
			t.Errorf("the Store that committed it knows: remaining %v, sure %v", res.MaxRemaining(), res.MinRemaining)
		}
		time.Sleep(2 * time.Second)
		do(t, late.Authority(), acquire(idB, time.Second), lease.ErrHeldByOther)
		do(t, early.Authority(), acquire(idB, time.Second), 0)
		do(t, holder.Authority(), renew(idA), lease.ErrIDMismatch)
	})
}

// If each new process tries once, all of them are refused, even long after the holder has died, because
// each sees the lease for the first time. A process that waits for longer than the duration of the lease
// acquires it. SPEC H1.
func TestNewcomersWhoTryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		do(t, newStore(t, e, engine.Options{}).Authority(), acquire(idA, 30*time.Second), 0)
		newcomer := func() *session.Session {
			s, err := session.New(newStore(t, e, engine.Options{}).Authority(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		for range 3 {
			time.Sleep(time.Hour)
			s := newcomer()
			if ok, err := s.Acquire(t.Context()); ok || err != nil {
				t.Fatalf("an acquire at the first observation: %v, %v", ok, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		patient, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		s := newcomer()
		if _, err := session.AcquireWait(patient, s, nil); err != nil {
			t.Error(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A version was committed after the sending of the last request whose answer did not show it.
func TestLagBoundsFromBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, other := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		do(t, holder.Authority(), acquire(idA, time.Minute), 0)
		time.Sleep(3 * time.Second)
		do(t, holder.Authority(), renew(idA), 0) // at 3 s: the last request that did not show the break
		time.Sleep(3 * time.Second)
		do(t, other.Authority(), breaks(10*time.Second), 0) // at 6 s
		time.Sleep(2 * time.Second)
		res := do(t, holder.Authority(), renew(idA), lease.ErrBroken) // at 8 s
		if res.MaxRemaining() != 10*time.Second || !sure(res, 5*time.Second, 5*time.Second) {
			t.Errorf("remaining %v, want 10s from the first observation; sure %v, want 10s from the renewal 5s ago", res.MaxRemaining(), res.MinRemaining)
		}
	})
}

// SPEC M6: a break only moves the end of a lease to an earlier time, even if the observers have computed
// different ends.
func TestBreakOnlyMovesEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, early, late := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		do(t, holder.Authority(), acquire(idA, time.Minute), 0)
		do(t, early.Authority(), breaks(20*time.Second), 0)
		time.Sleep(15 * time.Second)
		// For the observer late, the break has just begun. Its second break "shortens" the first to an end
		// that is too late for the observer early.
		if res := do(t, late.Authority(), breaks(10*time.Second), 0); res.MaxRemaining() != 10*time.Second {
			t.Errorf("late: remaining %v", res.MaxRemaining())
		}
		if res := do(t, early.Authority(), lease.Request{Action: lease.ActionRead}, 0); res.MaxRemaining() != 5*time.Second {
			t.Errorf("early: remaining %v, want the 5s that were left already", res.MaxRemaining())
		}
		time.Sleep(5 * time.Second)
		do(t, early.Authority(), acquire(idB, time.Second), 0)
		// The break of another term does not depend on the first break.
		do(t, late.Authority(), breaks(500*time.Millisecond), 0)
		if res := do(t, early.Authority(), lease.Request{Action: lease.ActionRead}, 0); res.MaxRemaining() != 500*time.Millisecond {
			t.Errorf("another term: remaining %v", res.MaxRemaining())
		}
	})
}

func TestExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		a, b := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{}).Authority()
		steps := []struct {
			what string
			by   lease.Authority
			req  lease.Request
			code lease.Code
			want int
		}{
			{"first acquire of a name", a, acquire(idA, time.Minute), 0, 2},
			{"renewal", a, renew(idA), 0, 1},
			{"renewal again", a, renew(idA), 0, 1},
			{"refusal is loaded", a, acquire(idB, time.Minute), lease.ErrHeldByOther, 1},
			{"read is loaded", a, lease.Request{Action: lease.ActionRead}, 0, 1},
			{"newcomer is refused", b, acquire(idB, time.Minute), lease.ErrHeldByOther, 1},
			{"release", a, release(idA), 0, 1},
			{"acquire begins in vain, from what is old", b, acquire(idB, time.Minute), 0, 2},
			{"acquire from what is old, refused by what the conflict shows", a, acquire(idA, time.Minute), lease.ErrHeldByOther, 1},
			{"release by the last", b, release(idB), 0, 1},
			{"acquire again", b, acquire(idB, time.Minute), 0, 1},
			{"renewal that was overtaken", a, renew(idA), lease.ErrIDMismatch, 1},
		}
		for _, s := range steps {
			if n := e.count(func() { do(t, s.by, s.req, s.code) }); n != s.want {
				t.Errorf("%s: %d exchanges, want %d", s.what, n, s.want)
			}
		}
	})
}

// SPEC A4: an Authority never answers from a remembered record alone.
func TestMemoryNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		a, b := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{}).Authority()
		do(t, a, acquire(idA, time.Minute), 0)
		do(t, b, acquire(idB, time.Minute), lease.ErrHeldByOther) // b remembers that the lease is held
		do(t, a, release(idA), 0)
		do(t, b, acquire(idB, time.Minute), 0) // the acquire of b is granted, although b remembers a held lease
		if res := do(t, a, lease.Request{Action: lease.ActionRead}, 0); res.Record.ID != idB {
			t.Errorf("a read shows %v, which is over", res.Record.ID)
		}
		do(t, b, release(idB), 0)
		do(t, a, lease.Request{Action: lease.ActionWrite}, 0) // a remembers that B holds the lease
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 8
		e := newFake()
		s := newStore(t, e, engine.Options{Names: most})
		holder := newStore(t, e, engine.Options{}).Authority()
		load := func(name string) lease.Snapshot {
			snap, err := s.Load(context.Background(), name)
			if err != nil {
				t.Fatal(err)
			}
			return snap
		}
		names := make([]string, most+1)
		for i := range names {
			names[i] = fmt.Sprint("job-", i)
			if _, err := holder.Do(context.Background(), names[i], acquire(idA, time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		ends := map[string]time.Time{}
		for _, name := range names[:most] {
			ends[name] = load(name).Record.Until
		}
		time.Sleep(time.Second)
		load(names[0]) // this name was used after the other names
		load(names[most])
		for i, name := range append(names[2:most:most], names[0]) {
			if until := load(name).Record.Until; until != ends[name] {
				t.Errorf("%d: the first observation of %s was forgotten: until %v, not %v", i, name, until, ends[name])
			}
		}
		if until := load(names[1]).Record.Until; until != ends[names[1]].Add(time.Second) {
			t.Errorf("the one that was unused for the longest should count from the beginning: until %v, first %v", until, ends[names[1]])
		}
	})
}

// An answer that arrives after a newer answer does not restore the older entry.
func TestOvertakenAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, s := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		do(t, holder.Authority(), acquire(idA, time.Minute), 0)
		do(t, s.Authority(), lease.Request{Action: lease.ActionRead}, 0)
		held, overtaken := make(chan struct{}), make(chan lease.Snapshot)
		e.after = func() { <-held }
		go func() {
			snap, err := s.Load(context.Background(), name)
			if err != nil {
				t.Error(err)
			}
			overtaken <- snap
		}()
		synctest.Wait()
		e.after = nil
		time.Sleep(time.Second)
		do(t, holder.Authority(), release(idA), 0)
		newer, err := s.Load(context.Background(), name)
		if err != nil || newer.Record.State != lease.Available {
			t.Fatal(newer, err)
		}
		close(held)
		if snap := <-overtaken; snap.Version != newer.Version {
			t.Errorf("the answer shows %v after %v was seen", snap.Record, newer.Record)
		}
	})
}

// If the answer to a renewal arrives after a newer one, the renewal returns the record that it wrote.
// SPEC A5.
func TestOvertakenRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, other := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		granted := do(t, holder.Authority(), acquire(idA, time.Minute), 0)
		do(t, other.Authority(), lease.Request{Action: lease.ActionRead}, 0)
		held, overtaken := make(chan struct{}), make(chan lease.Result)
		e.after = func() { <-held }
		go func() {
			res, err := holder.Authority().Do(context.Background(), name, lease.Request{Action: lease.ActionRenew, ID: idA})
			if err != nil {
				t.Error(err)
			}
			overtaken <- res
		}()
		synctest.Wait()
		e.after = nil
		do(t, other.Authority(), lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, 0)
		if newer, err := holder.Load(context.Background(), name); err != nil || newer.Record.ID != idB {
			t.Fatal(newer, err)
		}
		close(held)
		if res := <-overtaken; res.Record.ID != idA || res.Record.Epoch != granted.Record.Epoch {
			t.Errorf("a renewal was granted with the record of a later change: %v", res.Record)
		}
	})
}

func TestOptions(t *testing.T) {
	for field, o := range map[string]engine.Options{
		"Options.Names":              {Names: -1},
		"Options.Limits.MaxDuration": {Limits: lease.Limits{MaxDuration: -1}},
	} {
		var err *lease.FieldError
		if _, got := engine.NewStore(newFake(), &o); !errors.As(got, &err) || err.Field != field {
			t.Errorf("%s: %v", field, got)
		}
	}
	if _, err := engine.NewStore(nil, nil); err == nil || err.Error() != "NewStore.b = nil: must be given" {
		t.Errorf("without an engine: %v", err)
	}
}

// Stores and Sessions have the same default of MaxClockDrift.
func TestDefaultDrift(t *testing.T) {
	o, err := (*session.Options)(nil).Complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxClockDrift != engine.DefaultMaxClockDrift {
		t.Errorf("a session allows for %v, an observer for %v", o.MaxClockDrift, engine.DefaultMaxClockDrift)
	}
}

// A renewal that has waited in a gate lasts for the whole duration from when it was sent.
func TestRenewalThatWaitedAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := engine.NewGate(1)
		store := newStore(t, newFake(), engine.Options{Gate: g})
		s, err := session.New(store.Authority(), "x", &session.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		blocking, err := g.Enter(t.Context(), engine.Request{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(12 * time.Second)
		blocking.Leave(true)
		time.Sleep(time.Millisecond)
		confirmed, _ := s.LastConfirmed()
		until, held := s.Until()
		if d := until.Sub(confirmed); !held || confirmed.Sub(began) < 11*time.Second || d < 29*time.Second {
			t.Errorf("held: %v; the renewal was sent %v after the acquire, and the session relies on it for %v only", held, confirmed.Sub(began), d)
		}
		_ = s.Close(t.Context())
	})
}
