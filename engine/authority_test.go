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

// renewNow renews a lease, and computes the new end from the time of the store, as a server with a clock does.
func renewNow(ctx context.Context, s *memory.Store, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
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

// counted counts the loads, swaps and renewals of a store.
type counted struct {
	*memory.Store
	loads, swaps, renewals int
	err                    error // the error of the next swap or renewal
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

func (c *counted) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	c.renewals++
	if err := c.err; err != nil {
		c.err = nil
		return lease.Snapshot{}, err
	}
	return renewNow(ctx, c.Store, name, old, next)
}

// A renewal, a change and a release of a lease whose record is remembered take one request. After an error
// of a swap, the authority forgets the record, unless the error proves that the swap was not sent. A renewal that
// has failed is repeated in one request. Otherwise a server that was slow for a moment, so that renewals timed out,
// would get more requests than before.
func TestRequestsAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Store: memory.New(nil)}
		m := engine.NewMemory(2)
		a := engine.NewAuthority(c, c.renew, m)
		ctx, id, other := t.Context(), lease.ID{1}, lease.ID{2}
		for i, step := range []struct {
			req                        lease.Request
			err                        error // the error of the first swap or renewal
			loads, swaps, renews, kept int
		}{
			{lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}, nil, 1, 1, 0, 1},
			{lease.Request{Action: lease.ActionRenew, ID: id}, nil, 0, 0, 1, 1},
			{lease.Request{Action: lease.ActionRenew, ID: id}, context.DeadlineExceeded, 0, 0, 1, 1},
			{lease.Request{Action: lease.ActionRenew, ID: id}, nil, 0, 0, 1, 1},
			{lease.Request{Action: lease.ActionRenew, ID: other}, nil, 1, 0, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, nil, 0, 1, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: other}, nil, 1, 0, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: id}, lease.ErrUnsent, 0, 1, 0, 1},
			{lease.Request{Action: lease.ActionChange, ID: other, Proposed: id}, errors.New("no answer"), 0, 1, 0, 0},
			{lease.Request{Action: lease.ActionRenew, ID: other}, nil, 1, 1, 0, 1},
			{lease.Request{Action: lease.ActionRelease, ID: other}, nil, 0, 1, 0, 0},
		} {
			c.loads, c.swaps, c.renewals, c.err = 0, 0, 0, step.err
			_, err := a.Do(ctx, "x", step.req)
			if step.err != nil && !errors.Is(err, step.err) {
				t.Errorf("step %d: %v, want %v", i, err, step.err)
			}
			if c.loads != step.loads || c.swaps != step.swaps || c.renewals != step.renews || m.Len() != step.kept {
				t.Errorf("step %d, %v: %d loads, %d swaps, %d renewals, %d names remembered; want %d, %d, %d, %d",
					i, step.req.Action, c.loads, c.swaps, c.renewals, m.Len(), step.loads, step.swaps, step.renews, step.kept)
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
