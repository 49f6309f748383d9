package leasetest

import (
	"context"

	"github.com/fencedlease/lease"
)

// Tamper returns s as if somebody had written into it by hand: f may change the record of
// every snapshot that is loaded, into a hostile one too. What is swapped in is not changed.
// The function f may be called from any number of goroutines.
func Tamper(s lease.Store, f func(name string, r *lease.Record)) lease.Store {
	return passOnStore(tampered{s, f}, s)
}

type tampered struct {
	lease.Store
	f func(name string, r *lease.Record)
}

func (s tampered) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	if err == nil {
		s.f(name, &snap.Record)
	}
	return snap, err
}
