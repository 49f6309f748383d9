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
	"github.com/fencedlease/lease/internal/urgent"
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
		{"a read of a Session that renews", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Load(urgent.Mark(ctx), "x")
			return err
		}, 2 * time.Second},
		{"a renewal that must read first", func(ctx context.Context, _, fresh *engine.Store) error {
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
