package processes

import (
	"context"

	"github.com/fencedlease/lease"
)

// A Wrong is a bug that a test plants in a group, to check that the group finds it.
type Wrong string

// These are the bugs that a test can plant.
const (
	NoGuard    Wrong = "there is no guard"
	NoAdvance  Wrong = "holders read before they show their token"
	NoDeadline Wrong = "holders believe until they are told otherwise"
	Early      Wrong = "contenders wait for a quarter of the duration"
)

// Wrongs returns all bugs that a test can plant.
func Wrongs() []Wrong { return []Wrong{NoGuard, NoAdvance, NoDeadline, Early} }

// authority returns an authority over a store, with the bug if w is Early.
func (w Wrong) authority(s Store) lease.Authority {
	if w == Early {
		return lease.NewAuthority(early{s.(lease.Store)})
	}
	return s.Authority()
}

type early struct{ lease.Store }

func (s early) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	if !snap.Record.Until.IsZero() {
		snap.Record.Until = snap.Record.Until.Add(-snap.Record.Duration * 3 / 4)
	}
	return snap, err
}
