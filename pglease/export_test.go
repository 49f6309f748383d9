package pglease

import (
	"context"

	"github.com/fencedlease/lease"
)

// Through returns an authority as that of s, with a memory of its own, all of whose exchanges go
// through what the two functions make of them: a renewal in one exchange is the Swap of the
// second.
func (s *Store) Through(exchanges, renewals func(lease.Store) lease.Store) lease.Authority {
	return authority{rememberingStore{through{exchanges(&s.rows), renewals(renewer{&s.rows}), s}, newMemory(defaultNames)}, nil}
}

// Mute makes s send no notifications, as if its process ended after each commit.
func (s *Store) Mute() { s.notifier.send = func(context.Context, string) error { return nil } }

// TogetherOnly makes s renew every lease as it does under load, with the statement for many.
func (s *Store) TogetherOnly() { s.renewals.most = 0 }

// Remembered returns how many names s remembers.
func (s *Store) Remembered() int {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return len(s.memory.byName)
}

type through struct {
	lease.Store
	renewals lease.Store
	lease.Limiter
}

func (e through) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return e.renewals.Swap(ctx, name, old, next)
}

type renewer struct{ *rows }

func (s renewer) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.renew(ctx, name, old, next)
}
