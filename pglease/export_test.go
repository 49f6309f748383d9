package pglease

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Renewing returns an authority like that of s, with a memory of its own. The Swap of the store that renewals
// returns is a renewal in one exchange.
func (s *Store) Renewing(renewals func(lease.Store) lease.Store) lease.Authority {
	return engine.NewAuthority(s, renewals(renewer{&s.rows}).Swap, nil)
}

// Mute makes s send no notifications, as if its process ended after each commit.
func (s *Store) Mute() {
	s.notifications.Send = func(_ context.Context, pass engine.Pass, all []string) ([]struct{}, error) {
		pass.Leave(true)
		return make([]struct{}, len(all)), nil
	}
}

type renewer struct{ *rows }

func (s renewer) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.renew(ctx, name, old, next)
}
