package leasetest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A plainClient is a second client of a plainStore, with the bugs that show only where there are
// two.
type plainClient struct {
	*plainStore

	own     sync.Mutex
	cache   map[string]lease.Snapshot
	signals []chan struct{}
}

func (c *plainClient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	c.own.Lock()
	cached, ok := c.cache[name]
	c.own.Unlock()
	if ok && c.bug == "caches what it did not swap itself" {
		cached.Now = time.Now().Round(0).UTC()
		return cached, ctx.Err()
	}
	snap, err := c.plainStore.Load(ctx, name)
	if c.bug == "tells the time of its process" {
		snap.Now = snap.Now.Add(-time.Minute)
	}
	c.own.Lock()
	defer c.own.Unlock()
	c.cache[name] = snap
	return snap, err
}

func (c *plainClient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if c.bug == "locks within its process only" {
		if now, _ := c.plainStore.Load(ctx, name); now.Version != old.Version {
			return now, lease.ErrConflict
		}
		time.Sleep(time.Nanosecond) // the other client comes between
		old, _ = c.plainStore.Load(ctx, name)
	}
	if c.bug == "writes back what it read of all names" {
		c.mu.Lock()
		all := maps.Clone(c.records)
		c.mu.Unlock()
		time.Sleep(time.Nanosecond) // the other client comes between
		delete(all, name)
		c.mu.Lock()
		maps.Copy(c.records, all)
		c.mu.Unlock()
	}
	c.own.Lock()
	defer c.own.Unlock()
	if c.bug == "compares with what it remembers" && c.cache[name].Version == old.Version {
		old, _ = c.plainStore.Load(ctx, name)
	}
	snap, err := c.plainStore.Swap(ctx, name, old, next)
	delete(c.cache, name)
	for _, s := range c.signals {
		select {
		case s <- struct{}{}:
		default:
		}
	}
	return snap, err
}

func (c *plainClient) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if c.bug != "signals its own swaps only" {
		return c.plainStore.Watch(ctx, name)
	}
	c.own.Lock()
	defer c.own.Unlock()
	s := make(chan struct{}, 1)
	c.signals = append(c.signals, s)
	return s, nil
}

// another is a second client of a plainStore.
func another(_ testing.TB, s lease.Store) lease.Store {
	return &plainClient{plainStore: s.(*plainStore), cache: map[string]lease.Snapshot{}}
}
