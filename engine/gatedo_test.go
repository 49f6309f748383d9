package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Five reads wait at an engine that takes a second for each request, and one at a time. Renewals and releases
// overtake those that wait, and so do the reads that they need; an acquire does not.
func TestRenewalsOvertakeReads(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(ctx context.Context, s, fresh *engine.Store) error
		took time.Duration
	}{
		{"a renewal", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Authority().Do(ctx, "x", renew(idA))
			return err
		}, 2 * time.Second},
		{"a release", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Authority().Do(ctx, "x", release(idA))
			return err
		}, 2 * time.Second},
		{"a renewal that reads first", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := engine.NewAuthority(s, nil, nil).Do(ctx, "x", renew(idA))
			return err
		}, 4 * time.Second}, // one read passes between its two requests
		{"a renewal by another process", func(ctx context.Context, _, fresh *engine.Store) error {
			_, err := fresh.Authority().Do(ctx, "x", renew(idA))
			return err
		}, 4 * time.Second}, // one read passes between its two requests
		{"an acquire", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Authority().Do(ctx, "y", acquire(idB, time.Minute))
			return err
		}, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, gate := newFake(), engine.NewGate(1)
			s, fresh := newStore(t, e, engine.Options{Gate: gate}), newStore(t, e, engine.Options{Gate: gate})
			if _, err := s.Authority().Do(t.Context(), "x", acquire(idA, time.Minute)); err != nil {
				t.Fatal(err)
			}
			var underWay int
			e.before = func() {
				if underWay++; underWay > 1 {
					t.Error("two requests are under way")
				}
				time.Sleep(time.Second)
				underWay--
			}
			var reads sync.WaitGroup
			for i := range 5 {
				reads.Go(func() { _, _ = s.Load(t.Context(), fmt.Sprint("read", i)) })
			}
			synctest.Wait()
			began := time.Now()
			if err := c.do(t.Context(), s, fresh); err != nil || time.Since(began) != c.took {
				t.Errorf("%s took %v, want %v: %v", c.what, time.Since(began), c.took, err)
			}
			reads.Wait()
		})
	}
}

// A revisions counts the requests for the Revision.
type revisions struct {
	*fake
	n atomic.Int64
}

func (r *revisions) Revision(ctx context.Context) (int64, error) {
	r.n.Add(1)
	return r.fake.Revision(ctx)
}

// The Store asks for the Revision in time although many reads wait, because all watched leases need it.
func TestRevisionOvertakesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &revisions{fake: newFake()}
		s := newStore(t, e, engine.Options{Gate: engine.NewGate(1)})
		if _, err := s.Authority().Do(t.Context(), "x", acquire(idA, time.Minute)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		e.before = func() { time.Sleep(700 * time.Millisecond) }
		var reads sync.WaitGroup
		for i := range 20 {
			reads.Go(func() { _, _ = s.Load(ctx, fmt.Sprint("read", i)) })
		}
		if _, err := s.Watch(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if n := e.n.Load(); n < 2 {
			t.Errorf("the Revision was read %d times in 10 s, want one each 4 s", n)
		}
		cancel()
		reads.Wait()
		time.Sleep(time.Second) // a read of the Revision may be under way
	})
}

// The Gate knows the leases that are held, also when one ends or is taken by another process. If it has no room,
// an acquire is not sent, and its error has both figures.
func TestAcquireWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, gate := newFake(), engine.NewGate(1)
		s, other := newStore(t, e, engine.Options{Gate: gate}), newStore(t, e, engine.Options{})
		ask := func(s *engine.Store, name string, req lease.Request) error {
			_, err := s.Authority().Do(t.Context(), name, req)
			return err
		}
		const leases, duration = 10, 300 * time.Millisecond // 100 renewals a second
		for i := range leases {
			if err := ask(s, fmt.Sprint(i), acquire(idA, duration)); err != nil {
				t.Fatal(err)
			}
		}
		renewals := func() { // twice as many as the engine does
			var all sync.WaitGroup
			e.before = func() { time.Sleep(10 * time.Millisecond) }
			for i := range 2 {
				all.Go(func() {
					for began := time.Now(); time.Since(began) < 2*time.Second; {
						for j := range leases / 2 {
							if err := ask(s, fmt.Sprint(i*leases/2+j), renew(idA)); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			all.Wait()
			e.before = nil
		}
		refused := func(leases int) {
			t.Helper()
			var err error
			sent := e.count(func() { err = ask(s, "new", acquire(idA, duration)) })
			var full *engine.FullError
			if !errors.As(err, &full) || full.Leases != leases || full.Does < 90 || full.Does > 110 || lease.CodeOf(err) != lease.ErrUnsent {
				t.Errorf("with %d leases of which the renewals need %d requests a second: %v", leases, leases*10, err)
			}
			if sent > 1 { // it may have to read the record
				t.Errorf("an acquire that is refused takes %d requests", sent)
			}
		}
		renewals()
		refused(leases)
		if err := ask(s, "0", release(idA)); err != nil {
			t.Error(err)
		}
		refused(leases - 1)
		if err := errors.Join(ask(other, "1", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}), ask(other, "1", acquire(idB, time.Minute))); err != nil {
			t.Error(err)
		}
		if err := ask(s, "1", renew(idA)); lease.CodeOf(err) == 0 {
			t.Errorf("renewed after another process has taken the lease: %v", err)
		}
		refused(leases - 2)
		for i := 2; i < 6; i++ {
			if err := ask(s, fmt.Sprint(i), release(idA)); err != nil {
				t.Error(err)
			}
		}
		if err := ask(s, "new", acquire(idA, duration)); err != nil {
			t.Errorf("after five leases have ended: %v", err)
		}
	})
}

// A conflicting engine takes 10 ms for a Swap, and every other one conflicts.
type conflicting struct {
	*fake
	n atomic.Int64
}

func (c *conflicting) Swap(ctx context.Context, name, old string, next engine.Retained) (engine.Entry, error) {
	time.Sleep(10 * time.Millisecond)
	if c.n.Add(1)%2 == 0 {
		found, err := c.fake.Load(ctx, name)
		return found, cmp.Or(err, error(lease.ErrConflict))
	}
	return c.fake.Swap(ctx, name, old, next)
}

// A renewal that conflicts, because the answer to an earlier one was lost, does not count as a renewal. Otherwise a
// server that was slow would seem to do twice as much as it does, and get more leases than it can renew.
func TestConflictsAreNoRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := engine.NewGate(1)
		s := newStore(t, &conflicting{fake: newFake()}, engine.Options{Gate: gate})
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				name := fmt.Sprint(i)
				_, err := s.Authority().Do(t.Context(), name, acquire(idA, 100*time.Millisecond)) // 30 renewals a second
				for began := time.Now(); time.Since(began) < 2*time.Second && err == nil; {
					_, err = s.Authority().Do(t.Context(), name, renew(idA))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := gate.Admit("new", 30*time.Millisecond); err != nil { // 100 renewals a second
			t.Errorf("measured while half of the renewals conflicted: %v", err)
		}
	})
}

// A server that only answers with errors, such as one that is overloaded, gets fewer requests at a time.
func TestFewerRequestsAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		s := newStore(t, e, engine.Options{Gate: engine.NewGate(16)})
		var mu sync.Mutex
		underWay, most := 0, 0
		e.before = func() {
			mu.Lock()
			underWay++
			most = max(most, underWay)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			underWay--
			mu.Unlock()
		}
		load := func() (underWay int) {
			var all sync.WaitGroup
			most = 0
			for i := range 32 {
				all.Go(func() { _, _ = s.Load(t.Context(), fmt.Sprint("busy", i)) })
			}
			all.Wait()
			return most
		}
		if n := load(); n != 12 { // the rest is for renewals
			t.Errorf("%d requests at a time, want 12", n)
		}
		for i := range 32 {
			e.corrupt[fmt.Sprint("busy", i)] = errors.New("too many requests")
		}
		for range 3 {
			load()
		}
		if n := load(); n > 4 {
			t.Errorf("%d requests at a time after errors", n)
		}
	})
}

// The Gate learns from each Swap of a store whether the store holds the lease, and the store learns how urgent it is. A
// Swap with which an operator or another process ends a lease does not overtake others, because it may wait for a lock.
func TestGateSwap(t *testing.T) {
	held := lease.Record{State: lease.Leased, ID: idA, Epoch: 1, Duration: time.Minute}
	changed, again := held, held
	changed.ID, again.Epoch = idB, 2
	broken := lease.Record{State: lease.Broken, ID: idA, Epoch: 1}
	renewal := engine.Request{Urgent: true, Name: "x", Renewals: 1}
	bad := errors.New("no answer")
	for _, c := range []struct {
		what      string
		old, next lease.Record
		err       error
		request   engine.Request
		holds     bool // before the Swap
		held      bool // after it
	}{
		{"a grant", lease.Record{}, held, nil, engine.Request{}, false, true},
		{"a grant to another", lease.Record{}, held, lease.ErrConflict, engine.Request{}, false, false},
		{"a grant without an answer", lease.Record{}, held, bad, engine.Request{}, false, false},
		{"another grant", held, again, nil, engine.Request{}, true, true},
		{"a renewal", held, held, nil, renewal, false, true},
		{"a renewal without an answer", held, held, bad, renewal, true, true},
		{"a renewal after a loss", held, held, fmt.Errorf("lost: %w", lease.ErrConflict), renewal, true, false},
		{"a change", held, changed, nil, renewal, true, true},
		{"a release", held, lease.Record{State: lease.Available, Epoch: 1}, nil, engine.Request{Urgent: true}, true, false},
		{"a break", held, broken, nil, engine.Request{}, true, false},
	} {
		g := engine.NewGate(1)
		if c.holds {
			g.Note("x", held)
		}
		var got engine.Request
		f := func(r engine.Request) error { got = r; return c.err }
		if err := g.Swap("x", c.old, c.next, f); err != c.err || got != c.request || g.Holds("x") != c.held {
			t.Errorf("%s: %v, %+v, held %v; want %v, %+v, held %v", c.what, err, got, g.Holds("x"), c.err, c.request, c.held)
		}
		got = engine.Request{}
		if err := (*engine.Gate)(nil).Swap("x", c.old, c.next, f); err != c.err || got != c.request {
			t.Errorf("%s without a Gate: %v, %+v", c.what, err, got)
		}
	}
}

// What a server answers with a Code shows that it works. After any other error, and after a panic, it gets fewer requests.
func TestGateDoAnswered(t *testing.T) {
	for _, c := range []struct {
		what     string
		f        func() error
		answered bool
	}{
		{"nil", func() error { return nil }, true},
		{"a conflict", func() error { return lease.ErrConflict }, true},
		{"a damaged record", func() error { return fmt.Errorf("x: %w", lease.ErrCorrupt) }, true},
		{"closed", func() error { return lease.ErrClosed }, false},
		{"no connection", func() error { return fmt.Errorf("x: %w", lease.ErrUnsent) }, false},
		{"a busy server", func() error { return errors.New("busy") }, false},
		{"a panic", func() error { panic("x") }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := engine.NewGate(16)
			time.Sleep(time.Second)
			func() {
				defer func() { _ = recover() }()
				_ = g.Do(t.Context(), engine.Request{}, c.f)
			}()
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			var entered atomic.Int64
			for range 16 {
				all.Go(func() {
					_ = g.Do(ctx, engine.Request{Urgent: true}, func() error { entered.Add(1); <-ctx.Done(); return nil })
				})
			}
			synctest.Wait()
			if full := entered.Load() == 16; full != c.answered {
				t.Errorf("after %s, %d requests are under way at once", c.what, entered.Load())
			}
			cancel()
			all.Wait()
		})
	}
}
