package leasefault

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// A Loss says which data a store loses when the store restarts.
type Loss uint8

const (
	// LoseMemory makes a store lose all records, including their epochs.
	LoseMemory Loss = iota

	// ResetTerm makes a store forget when each lease began. The duration of a lease starts again at the first
	// Load after the restart.
	ResetTerm
)

// Restartable returns a store that wraps s, and a function that simulates a restart of this store. The
// parameter loss specifies the data that the store loses at a restart. Records that are written after the
// restart are complete.
func Restartable(s lease.Store, loss Loss) (_ lease.Store, restart func()) {
	must(s != nil, "Restartable: the store must not be nil")
	must(loss <= ResetTerm, "Restartable: the loss is %d, and must be LoseMemory or ResetTerm", loss)
	r := &restartable{Store: s, loss: loss}
	return wrap.Store(r, s), r.restart
}

type restartable struct {
	lease.Store
	loss Loss

	mu    sync.Mutex
	again bool              // restart was called
	since map[string]string // the version of each name that was committed after the restart
	epoch map[string]uint64 // the epoch of each name that was lost in the restart
	began map[string]time.Time
}

func (r *restartable) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again, r.since, r.epoch, r.began = true, map[string]string{}, map[string]uint64{}, map[string]time.Time{}
}

func (r *restartable) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := r.Store.Load(ctx, name)
	if err != nil {
		return snap, err
	}
	return r.forget(name, snap), nil
}

// forget returns a copy of snap without the data that the restart has lost.
func (r *restartable) forget(name string, snap lease.Snapshot) lease.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.again || snap.Version == "" {
		return snap
	}
	if _, seen := r.began[name]; !seen {
		r.began[name] = snap.Now
		if r.loss == LoseMemory {
			r.epoch[name] = snap.Record.Epoch
		}
	}
	switch old := r.since[name] != snap.Version; {
	case old && r.loss == LoseMemory:
		snap.Record = lease.Record{}
	case old && !snap.Record.Until.IsZero():
		snap.Record.Until = r.began[name].Add(snap.Record.Duration)
	case !old:
		snap.Record.Epoch -= r.epoch[name]
	}
	return snap
}

func (r *restartable) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	inner, err := r.Store.Load(ctx, name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	if seen := r.forget(name, inner); inner.Version != old.Version || seen.Record.At(old.Now) != seen.Record.At(inner.Now) {
		return seen, lease.ErrConflict
	}
	r.mu.Lock()
	next.Epoch += r.epoch[name]
	r.mu.Unlock()
	snap, err := r.Store.Swap(ctx, name, inner, next)
	if err == nil {
		r.mu.Lock()
		if r.again {
			r.since[name] = snap.Version
		}
		r.mu.Unlock()
	}
	return r.forget(name, snap), err
}

func (r *restartable) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return listLoaded(ctx, r, r.Store, prefix)
}
