package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/memory"
)

// renewal returns a Renewal that computes the new end from the time of the store, as a server with a clock
// does, and adds one to *sent.
func renewal(s *memory.Store, sent *int) engine.Renewal {
	return func(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
		*sent++
		now, err := s.Load(ctx, name)
		if err != nil {
			return lease.Snapshot{}, err
		}
		if now.Version != old.Version || !now.Now.Before(now.Record.Until) {
			return lease.Snapshot{}, lease.ErrConflict
		}
		next.Until = now.Now.Add(next.Duration)
		return s.Swap(ctx, name, now, next)
	}
}

// counted counts the loads and swaps of a store.
type counted struct {
	*memory.Store
	loads, swaps int
	err          error // the error of the next swap
}

func (c *counted) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	c.loads++
	return c.Store.Load(ctx, name)
}

func (c *counted) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	c.swaps++
	if err := c.err; err != nil {
		c.err = nil
		return lease.Snapshot{}, err
	}
	return c.Store.Swap(ctx, name, old, next)
}

// A renewal that has failed is repeated in one request. Otherwise a server that was slow for a moment, so that
// renewals timed out, would get more requests than before.
func TestFailedRenewalIsRepeatedInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent, fail := &counted{Store: memory.New(nil)}, 0, true
		inner := renewal(c.Store, &sent)
		a := engine.NewAuthority(c, func(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
			if fail {
				return lease.Snapshot{}, context.DeadlineExceeded
			}
			return inner(ctx, name, old, next)
		}, engine.NewMemory(2))
		do := func(req lease.Request, want error) {
			t.Helper()
			if _, err := a.Do(t.Context(), "x", req); !errors.Is(err, want) {
				t.Errorf("%v: %v, want %v", req.Action, err, want)
			}
		}
		do(lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Duration: time.Minute}, nil)
		do(lease.Request{Action: lease.ActionRenew, ID: lease.ID{1}}, context.DeadlineExceeded)
		c.loads, c.swaps, fail = 0, 0, false
		do(lease.Request{Action: lease.ActionRenew, ID: lease.ID{1}}, nil)
		if c.loads != 0 || c.swaps != 0 || sent != 1 {
			t.Errorf("%d loads, %d swaps, %d renewals; want one renewal", c.loads, c.swaps, sent)
		}
	})
}

// A renewal, a change and a release of a lease whose record is remembered take one request. After an error
// of a swap, the authority forgets the record, unless the error proves that the swap was not sent.
func TestRequestsAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Store: memory.New(nil)}
		var renewals int
		m := engine.NewMemory(2)
		a := engine.NewAuthority(c, renewal(c.Store, &renewals), m)
		ctx, id, other := t.Context(), lease.ID{1}, lease.ID{2}
		for i, step := range []struct {
			req                        lease.Request
			err                        error // the error of the first swap
			loads, swaps, renews, kept int
		}{
			{lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}, nil, 1, 1, 0, 1},
			{lease.Request{Action: lease.ActionRenew, ID: id}, nil, 0, 0, 1, 1},
			{lease.Request{Action: lease.ActionRenew, ID: other}, nil, 1, 0, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, nil, 0, 1, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: other}, nil, 1, 0, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: id}, lease.ErrUnsent, 0, 1, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: id}, errors.New("no answer"), 0, 1, 0, 0},
			{lease.Request{Action: lease.ActionRenew, ID: other}, nil, 1, 1, 0, 1},
			{lease.Request{Action: lease.ActionRelease, ID: other}, nil, 0, 1, 0, 0},
		} {
			c.loads, c.swaps, c.err, renewals = 0, 0, step.err, 0
			_, err := a.Do(ctx, "x", step.req)
			if step.err != nil && !errors.Is(err, step.err) {
				t.Errorf("step %d: %v, want %v", i, err, step.err)
			}
			if c.loads != step.loads || c.swaps != step.swaps || renewals != step.renews || m.Len() != step.kept {
				t.Errorf("step %d, %v: %d loads, %d swaps, %d renewals, %d names remembered; want %d, %d, %d, %d",
					i, step.req.Action, c.loads, c.swaps, renewals, m.Len(), step.loads, step.swaps, step.renews, step.kept)
			}
		}
		for i := range 5 {
			if _, err := a.Do(ctx, fmt.Sprint("name-", i), lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if want := min(i+1, 2); m.Len() != want {
				t.Errorf("after %d names %d are remembered, want %d", i+1, m.Len(), want)
			}
		}
	})
}
