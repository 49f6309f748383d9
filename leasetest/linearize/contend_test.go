package linearize

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A looseStore commits a swap even if the state has ended since the load (S5), and shows no current
// record with a conflict. Only a request that comes between a load and its swap shows this.
type looseStore struct {
	*memory.Store
	mu    sync.Mutex
	sound bool
}

func (s *looseStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.Store.Load(ctx, name)
	switch {
	case err != nil:
		return now, err
	case old.Version != now.Version, s.sound && now.Record.At(old.Now) != now.Record.At(now.Now):
		return lease.Snapshot{}, lease.ErrConflict
	}
	return s.Store.Swap(ctx, name, now, next)
}

// SPEC A2, S1, S2, S5: with the default delays, a bug that shows only if requests overlap is found in at
// least 3 % of the histories, so 300 histories miss it with a chance of 1 in 10,000. Without delays it is
// not found, and no sound store is accused.
//
//	go test -run DelaysFindRaces -v -histories 20000 -seed 90000 .
func TestDelaysFindRaces(t *testing.T) {
	n := max(500, *histories/4)
	for _, c := range []struct {
		what        string
		sound       bool
		delay       time.Duration
		least, most int // histories in which the bug is found
	}{
		{"default delays", false, 0, n * 3 / 100, n},
		{"no delays", false, -1, 0, 0},
		{"a sound store", true, 0, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			found := 0
			for i := range uint64(n) {
				var rec *Recorder
				synctest.Test(t, func(t *testing.T) {
					rec = record(t, nil)
					rec.ContendStore(t.Context(), &looseStore{Store: memory.New(nil), sound: c.sound}, &Workload{Seed: *seed + i, Delay: c.delay})
				})
				err := rec.Check(within, "")
				if errors.Is(err, ErrTimeout) {
					t.Fatalf("seed %d: %v", *seed+i, err)
				}
				if err != nil {
					found++
				}
			}
			t.Logf("found in %d of %d histories, %.1f %%", found, n, 100*float64(found)/float64(n))
			if found < c.least || found > c.most {
				t.Errorf("found in %d of %d histories from seed %d, want from %d to %d", found, n, *seed, c.least, c.most)
			}
		})
	}
}

// A client that pauses after a request of unknown outcome, or until it is likely that a request can be sent,
// ends with its context.
func TestContendEnds(t *testing.T) {
	for what, answer := range map[string]error{
		"unknown outcomes": errors.New("no answer"),
		"nothing is sent":  lease.ErrUnsent,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			record(t, nil).Contend(ctx, func(int) lease.Authority { return failing{answer} }, &Workload{Timeout: time.Minute})
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("%s: the clients stop after %v, want 10s, when their context ends", what, took)
			}
		})
	}
}

// failing is an authority all of whose requests fail.
type failing struct{ err error }

func (f failing) Do(context.Context, string, lease.Request) (lease.Result, error) {
	return lease.Result{}, f.err
}
