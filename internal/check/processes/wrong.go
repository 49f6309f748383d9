package processes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Wrong is a bug that a test plants in a group. The test then checks that the group finds the
// bug.
type Wrong string

// These are the bugs that a test can plant.
const (
	NoGuard    Wrong = "there is no guard"
	NoAdvance  Wrong = "holders read before they show their token"
	NoDeadline Wrong = "holders believe until they are told otherwise"
	Trusting   Wrong = "the store answers a time-out as success"
	Early      Wrong = "contenders wait for a quarter of the duration"
)

// Wrongs returns all bugs that a test can plant.
func Wrongs() []Wrong { return []Wrong{NoGuard, NoAdvance, NoDeadline, Trusting, Early} }

// authority returns an authority over a store. If w is Trusting or Early, the authority has this
// bug.
func (w Wrong) authority(s Store) lease.Authority {
	switch w {
	case Trusting:
		return lease.NewAuthority(&trusting{Store: s.(lease.Store), last: map[string]lease.Snapshot{}})
	case Early:
		return lease.NewAuthority(early{s.(lease.Store)})
	}
	return s.Authority()
}

// trustAfter is how long a trusting store waits for an answer. The time for a load and a swap
// together is shorter than the RequestTimeout of a holder.
const trustAfter = 30 * time.Millisecond

// A trusting store treats a missing answer as a success. If a load gets no answer in time, it returns
// the last known record. If a swap gets no answer in time, it returns success.
type trusting struct {
	lease.Store
	mu   sync.Mutex
	last map[string]lease.Snapshot
}

func (s *trusting) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, trustAfter)
	defer cancel()
	snap, err := s.Store.Load(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := s.last[name]
	switch {
	case err == nil:
		s.last[name] = snap
	case seen:
		return last, nil
	}
	return snap, err
}

func (s *trusting) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, trustAfter)
	defer cancel()
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err != nil && !errors.Is(err, lease.ErrConflict) {
		return lease.Snapshot{Record: next, Version: old.Version, Now: old.Now}, nil
	}
	return snap, err
}

type early struct{ lease.Store }

func (s early) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	if !snap.Record.Until.IsZero() {
		snap.Record.Until = snap.Record.Until.Add(-snap.Record.Duration * 3 / 4)
	}
	return snap, err
}
