package linearize

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A looseStore is a memory store with a bug in the comparison of its swaps. A conflict does not show the
// current record.
type looseStore struct {
	*memory.Store
	next   func(version string, r lease.Record) string // the version of r, after that of the record before; nil if it is sound
	admits func(old, now lease.Snapshot) bool          // whether a swap from old is committed; nil if it is sound

	mu      sync.Mutex
	version string // the present version, if next is not nil
}

// unchanged is a sound comparison.
func unchanged(old, now lease.Snapshot) bool {
	return old.Version == now.Version && now.Record.At(old.Now) == now.Record.At(now.Now)
}

func (s *looseStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.Store.Load(ctx, name)
	if s.next != nil {
		snap.Version = s.version
	}
	return snap, err
}

func (s *looseStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inner, err := s.Store.Load(ctx, name)
	if err != nil {
		return inner, err
	}
	now, admits := inner, s.admits
	if s.next != nil {
		now.Version = s.version
	}
	if admits == nil {
		admits = unchanged
	}
	if !admits(old, now) {
		return lease.Snapshot{}, lease.ErrConflict
	}
	snap, err := s.Store.Swap(ctx, name, inner, next)
	if err == nil && s.next != nil {
		s.version = s.next(s.version, next)
		snap.Version = s.version
	}
	return snap, err
}

// races are bugs that show only if requests overlap, one of each kind. A hash of the whole record is not
// one, because no history shows it: two equal records have one epoch, and are the same state.
var races = map[string]func() lease.Store{
	"versions are a hash of state, ID and owner": func() lease.Store {
		hash := func(_ string, r lease.Record) string { return fmt.Sprint(r.State, r.ID, r.Owner) }
		return &looseStore{Store: memory.New(nil), version: hash("", lease.Record{}), next: hash}
	},
	"a swap compares nothing": func() lease.Store {
		return &looseStore{Store: memory.New(nil), admits: func(_, _ lease.Snapshot) bool { return true }}
	},
	"the end of the state is ignored": func() lease.Store { // S5
		return &looseStore{Store: memory.New(nil), admits: func(old, now lease.Snapshot) bool { return old.Version == now.Version }}
	},
}

// overlapping records a history over a store, and reports whether it is illegal.
func overlapping(t *testing.T, store func() lease.Store, seed uint64, delay time.Duration) bool {
	var rec *Recorder
	synctest.Test(t, func(t *testing.T) {
		rec = record(t, nil)
		rec.ContendStore(t.Context(), store(), &Workload{Seed: seed, Delay: delay})
	})
	err := rec.Check(within, "")
	if errors.Is(err, ErrTimeout) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return err != nil
}

// With the default delays each bug that shows only if requests overlap is found in at least 3 % of the
// histories. So 300 histories miss it with a chance of 1 in 10,000. No sound store is accused. Without
// delays no such bug is found.
//
//	go test -run DelaysFindRaces -v -histories 20000 -seed 90000 .
//
// SPEC A2, S1, S2, S5.
func TestDelaysFindRaces(t *testing.T) {
	n := max(500, *histories/4)
	for name, store := range races {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for i := range uint64(n) {
				if overlapping(t, store, *seed+i, 0) {
					found++
				}
			}
			t.Logf("found in %d of %d histories, %.1f %%", found, n, 100*float64(found)/float64(n))
			if found < n*3/100 {
				t.Errorf("found in %d of %d histories from seed %d, less than 3 %%", found, n, *seed)
			}
		})
	}
	for name, store := range map[string]func() lease.Store{
		"sound":                               func() lease.Store { return memory.New(nil) },
		"sound, and conflicts show no record": func() lease.Store { return &looseStore{Store: memory.New(nil)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(n) {
				if overlapping(t, store, *seed+i, 0) {
					t.Fatalf("seed %d: a sound store is accused", *seed+i)
				}
			}
			t.Logf("%d histories, 0 illegal", n)
		})
	}
	t.Run("without delays", func(t *testing.T) {
		t.Parallel()
		for i := range uint64(n / 5) {
			if overlapping(t, races["a swap compares nothing"], *seed+i, -1) {
				t.Fatalf("seed %d: a race is found without an overlap", *seed+i)
			}
		}
	})
}
