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

// newSession returns a Session that is closed at the end of the test.
func newSession(t *testing.T, a lease.Authority, o session.Options) *session.Session {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := session.New(a, name, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// hold returns a Session that has acquired the lease.
func hold(t *testing.T, a lease.Authority, o session.Options) *session.Session {
	t.Helper()
	s := newSession(t, a, o)
	if ok, err := s.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return s
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

// overtake calls f, and delays the answers that f gets from the engine until the function meanwhile has returned.
func (e *fake) overtake(f, meanwhile func()) {
	held, answered := make(chan struct{}), make(chan struct{})
	e.after = func() { <-held }
	go func() {
		defer close(answered)
		f()
	}()
	synctest.Wait()
	e.after = nil
	meanwhile()
	close(held)
	<-answered
}

// An answer that arrives after a newer answer does not restore the older entry. If it is the answer to a renewal, the
// renewal returns the record that it wrote. SPEC A5.
func TestOvertakenAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, other := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
		load := func(s *engine.Store) lease.Snapshot {
			snap, err := s.Load(t.Context(), name)
			if err != nil {
				t.Error(err)
			}
			return snap
		}
		granted := do(t, holder.Authority(), acquire(idA, time.Minute), 0)
		load(other)
		var renewed lease.Result
		var err error
		e.overtake(func() { renewed, err = holder.Authority().Do(t.Context(), name, renew(idA)) }, func() {
			do(t, other.Authority(), lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, 0)
			if newer := load(holder); newer.Record.ID != idB {
				t.Errorf("after a change: %v", newer.Record)
			}
		})
		if err != nil || renewed.Record.ID != idA || renewed.Record.Epoch != granted.Record.Epoch {
			t.Errorf("a renewal was granted with the record of a later change: %v, %v", renewed.Record, err)
		}
		var overtaken, newer lease.Snapshot
		e.overtake(func() { overtaken = load(other) }, func() {
			time.Sleep(time.Second)
			do(t, holder.Authority(), release(idB), 0)
			newer = load(other)
		})
		if newer.Record.State != lease.Available || overtaken.Version != newer.Version {
			t.Errorf("the answer shows %v after %v was seen", overtaken.Record, newer.Record)
		}
	})
}

func TestOptions(t *testing.T) {
	for field, o := range map[string]engine.Options{
		"Options.Names":              {Names: -1},
		"Options.Limits.MaxDuration": {Limits: lease.Limits{MaxDuration: -1}},
		"Options.Floor":              {Floor: "41"},
		"Options.MaxClockDrift":      {MaxClockDrift: 1},
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
