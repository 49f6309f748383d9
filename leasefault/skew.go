package leasefault

import (
	"context"
	"iter"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// Skew returns a store that keeps its records in s, but takes its time from the Clock c. So [Clock.Step]
// moves the time of the store, and while the Clock is stopped, no lease expires. Do not write to s directly,
// because only the returned store knows when each lease ends on the Clock.
func Skew(s lease.Store, c *Clock) lease.Store {
	must(s != nil, "Skew: the store must not be nil")
	must(c != nil, "Skew: the clock must not be nil")
	return wrap.Store(&skewed{Store: s, clock: c, turn: make(chan struct{}, 1), records: map[string]skewedRecord{}}, s)
}

type skewed struct {
	lease.Store
	clock *Clock
	turn  chan struct{} // full during a Swap, so that only one Swap runs at a time

	mu      sync.Mutex
	records map[string]skewedRecord // by name
}

type skewedRecord struct {
	record  lease.Record
	version string
}

func (s *skewed) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	return s.shift(name, snap), err
}

// shift converts the times in a snapshot of the inner store to times of the Clock of s.
func (s *skewed) shift(name string, snap lease.Snapshot) lease.Snapshot {
	if snap.Version == "" {
		return snap
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.records[name]; ok && kept.version == snap.Version {
		snap.Record = kept.record
	}
	snap.Now = s.clock.Now().UTC()
	return snap
}

func (s *skewed) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return lease.Snapshot{}, ctx.Err()
	}
	defer func() { <-s.turn }()

	inner, err := s.Store.Load(ctx, name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	now := s.clock.Now().UTC()
	if inner.Version != old.Version || old.Record.At(old.Now) != old.Record.At(now) {
		return s.shift(name, inner), lease.ErrConflict
	}
	put := next
	if !next.Until.IsZero() {
		put.Until = inner.Now.Add(next.Until.Sub(now))
	}
	snap, err := s.Store.Swap(ctx, name, inner, put)
	if err == nil {
		s.mu.Lock()
		s.records[name] = skewedRecord{next, snap.Version}
		s.mu.Unlock()
	}
	return s.shift(name, snap), err
}

func (s *skewed) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return listLoaded(ctx, s, s.Store, prefix)
}
