package pglease

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/remember"
)

// Through returns an authority like that of s, with a memory of its own. The function exchanges
// wraps the store to which the authority sends its loads and swaps. The function renewals wraps a
// store whose Swap is a renewal in one exchange.
func (s *Store) Through(exchanges, renewals func(lease.Store) lease.Store) lease.Authority {
	limited := struct {
		lease.Store
		lease.Limiter
	}{exchanges(&s.rows), s}
	return urgentAuthority{remember.NewAuthority(limited, renewals(renewer{&s.rows}).Swap, remember.NewMemory(remember.DefaultNames, wasNotSent))}
}

// Mute makes s send no notifications, as if its process ended after each commit.
func (s *Store) Mute() { s.notifier.send = func(context.Context, string) error { return nil } }

// TogetherOnly makes s renew every lease with the statement that renews many leases, as s does
// under load.
func (s *Store) TogetherOnly() { s.renewals.most = 0 }

// Remembered returns the number of names that s remembers.
func (s *Store) Remembered() int { return s.memory.Len() }

type renewer struct{ *rows }

func (s renewer) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.renew(ctx, name, old, next)
}
