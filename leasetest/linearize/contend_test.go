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

// A racyStore is a memory store in which the function swap executes every swap.
type racyStore struct {
	*memory.Store
	swap func(s *memory.Store, ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error)
}

func (s racyStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.swap(s.Store, ctx, name, old, next)
}

// unconditionally replaces the current record with next.
func unconditionally(s *memory.Store, ctx context.Context, name string, next lease.Record) (lease.Snapshot, error) {
	now, err := s.Load(ctx, name)
	if err != nil {
		return now, err
	}
	return s.Swap(ctx, name, now, next)
}

// A roundStore has two versions, which take turns.
type roundStore struct {
	*memory.Store
	mu    sync.Mutex
	swaps int
	shown string // the version now
	inner string
}

func (s *roundStore) show(snap lease.Snapshot) lease.Snapshot {
	if snap.Version != s.inner {
		s.swaps++
		s.inner, s.shown = snap.Version, fmt.Sprint("version-", s.swaps%2)
	}
	snap.Version = s.shown
	return snap
}

func (s *roundStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.Store.Load(ctx, name)
	return s.show(snap), err
}

func (s *roundStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old.Version != s.shown {
		return lease.Snapshot{}, lease.ErrConflict
	}
	old.Version = s.inner
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.show(snap), nil
}

// races are bugs that show only if requests overlap.
var races = map[string]func() lease.Store{
	"versions recur": func() lease.Store { return &roundStore{Store: memory.New(nil)} },
	"updates are lost": func() lease.Store {
		return racyStore{memory.New(nil), func(s *memory.Store, ctx context.Context, name string, _ lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
			return unconditionally(s, ctx, name, next)
		}}
	},
	"creation is unconditional": func() lease.Store {
		return racyStore{memory.New(nil), func(s *memory.Store, ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
			if old.Record.Epoch == 0 {
				return unconditionally(s, ctx, name, next)
			}
			return s.Swap(ctx, name, old, next)
		}}
	},
	"a swap ignores the end of the state": func() lease.Store { // S5
		return racyStore{memory.New(nil), func(s *memory.Store, ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
			now, err := s.Load(ctx, name)
			if err == nil && now.Version == old.Version {
				old.Now = now.Now
			}
			return s.Swap(ctx, name, old, next)
		}}
	},
}

// overlapping records a history over a store with the delays that are the default.
func overlapping(t *testing.T, s func() lease.Store, seed uint64, delay time.Duration) (rec *Recorder) {
	synctest.Test(t, func(t *testing.T) {
		rec = NewRecorder(nil)
		rec.ContendStore(t.Context(), s(), &Workload{Seed: seed, Delay: delay})
	})
	return rec
}

// With the default delays each bug that shows only if requests overlap is found within 300 histories, and a
// sound store is not accused. Without delays none is found. SPEC A2, S1, S2, S5.
func TestDelaysFindRaces(t *testing.T) {
	const most = 300
	for name, store := range races {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(most) {
				switch err := overlapping(t, store, *seed+n, 0).Check(within, ""); {
				case errors.Is(err, ErrTimeout):
					t.Fatal(err)
				case err != nil:
					t.Logf("found in history %d", n+1)
					return
				}
			}
			t.Errorf("not found in %d histories", most)
		})
	}
	t.Run("sound", func(t *testing.T) {
		t.Parallel()
		for n := range uint64(most) {
			if err := overlapping(t, func() lease.Store { return memory.New(nil) }, *seed+n, 0).Check(within, ""); err != nil {
				t.Fatalf("seed %d: %v", *seed+n, err)
			}
		}
	})
	t.Run("without delays", func(t *testing.T) {
		t.Parallel()
		for n := range uint64(most / 3) {
			if err := overlapping(t, races["updates are lost"], *seed+n, -1).Check(within, ""); err != nil {
				t.Fatalf("a race is found without an overlap: seed %d: %v", *seed+n, err)
			}
		}
	})
}
