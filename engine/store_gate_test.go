package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Ten reads wait at an engine that takes a second for each request, and one at a time. Renewals and releases
// overtake those that wait, and so do the reads that they need; an acquire does not.
func TestRenewalsOvertakeReads(t *testing.T) {
	var asked atomic.Int64
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
		{"a read of the Revision, which all watched leases need", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Watch(ctx, "x")
			for asked.Load() == 0 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			return err
		}, 5 * time.Second}, // it is due after 3.3 s
		{"an acquire", func(ctx context.Context, s, _ *engine.Store) error {
			_, err := s.Authority().Do(ctx, "y", acquire(idB, time.Minute))
			return err
		}, 12 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, gate := newFake(), engine.NewGate(1)
			s, fresh := newStore(t, e, engine.Options{Gate: gate}), newStore(t, e, engine.Options{Gate: gate})
			if _, err := s.Authority().Do(t.Context(), "x", acquire(idA, 50*time.Second)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked.Store(0)
			e.asked = func() { asked.Add(1) }
			var underWay int
			e.before = func() {
				if underWay++; underWay > 1 {
					t.Error("two requests are under way")
				}
				time.Sleep(time.Second)
				underWay--
			}
			var reads sync.WaitGroup
			for i := range 10 {
				reads.Go(func() { _, _ = s.Load(t.Context(), fmt.Sprint("read", i)) })
			}
			synctest.Wait()
			began := time.Now()
			if err := c.do(ctx, s, fresh); err != nil || time.Since(began) != c.took {
				t.Errorf("%s took %v, want %v: %v", c.what, time.Since(began), c.took, err)
			}
			cancel()
			reads.Wait()
			time.Sleep(time.Second) // a read of the Revision may be under way
		})
	}
}

// A renewal that has waited at the Gate lasts for the whole duration from when it was sent. A change that has waited
// keeps the end of the lease. The Gate knows from the Store which lease ends first, and whose renewal goes first.
func TestSwapsThatWaitedAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, g := newFake(), engine.NewGate(1)
		s := newStore(t, e, engine.Options{Gate: g})
		const waits = 12 * time.Second
		do(t, s.Authority(), acquire(idA, 30*time.Second), 0)
		if _, err := s.Authority().Do(t.Context(), "long", acquire(idA, time.Hour)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			req   lease.Request
			left  time.Duration
			order string // what is written as left, and the renewal of another lease
		}{
			{renew(idA), 30 * time.Second, "[30s 1h0m0s]"},
			{lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, 17 * time.Second, "[1h0m0s 17s]"}, // not urgent
		} {
			time.Sleep(time.Second)
			blocking, err := g.Enter(t.Context(), engine.Request{})
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(waits, func() { blocking.Leave(true) })
			var order []time.Duration
			e.commit = func(_, next engine.Retained) { order = append(order, next.Left) }
			var long sync.WaitGroup
			long.Go(func() { _, _ = s.Authority().Do(t.Context(), "long", renew(idA)) })
			synctest.Wait()
			res := do(t, s.Authority(), c.req, 0)
			long.Wait()
			if res.MinRemaining < c.left-c.left/400 || fmt.Sprint(order) != c.order {
				t.Errorf("%v: %v are certain, want %v; written %v, want %v", c.req.Action, res.MinRemaining, c.left, order, c.order)
			}
		}
	})
}
