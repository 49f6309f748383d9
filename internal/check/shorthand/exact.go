package shorthand

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/fencedlease/lease"
)

// An Exact store checks renewals: it must commit the record that the state machine computes for the time
// that the store returns.
type Exact struct {
	lease.Store
	T *testing.T
	N *atomic.Int64 // counts them
}

func (s Exact) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err == nil {
		s.N.Add(1)
		if want, refusal := lease.Step(old.Record, Renew(old.Record.ID), snap.Now); refusal != nil || snap.Record != want || old.Record.At(snap.Now) != old.Record {
			s.T.Errorf("%v was renewed at %v to %v, want %v, %v", old.Record, snap.Now, snap.Record, want, refusal)
		}
	}
	return snap, err
}
