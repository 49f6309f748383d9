package leasetest_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

// A counted store gives a name without a record the number of all swaps as its version, as rule 3 of
// lease.Store allows. Each write of another name changes that version.
type counted struct{ *Shelf }

func (c counted) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := c.Shelf.Load(ctx, name)
	if snap.Version == "never" {
		c.mu.Lock()
		defer c.mu.Unlock()
		snap.Version = strconv.Itoa(c.swaps)
	}
	return snap, err
}

func (c counted) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if shelved, _ := c.Shelf.Load(ctx, name); shelved.Version == "never" {
		if now, err := c.Load(ctx, name); err == nil && now.Version != old.Version {
			return now, lease.ErrConflict
		}
		old.Version = "never"
	}
	return c.Shelf.Swap(ctx, name, old, next)
}

// A store whose names share one counter of versions passes.
func TestSharedVersions(t *testing.T) {
	leasetest.TestStore(t, func(testing.TB) lease.Store {
		return counted{&Shelf{start: time.Now(), snaps: map[string]lease.Snapshot{}}}
	}, &leasetest.Options{Bubble: true})
}
