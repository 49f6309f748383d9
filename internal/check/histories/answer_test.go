package histories_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
)

// A flaky store loses one swap in ten, before or after it was applied.
type flaky struct {
	lease.Store
	mu   sync.Mutex
	rand *rand.Rand
}

var errTimeout = errors.New("timed out")

func (s *flaky) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	n := s.rand.IntN(20)
	s.mu.Unlock()
	if n == 0 {
		return lease.Snapshot{}, errTimeout
	}
	snap, err := s.Store.Swap(ctx, name, old, next)
	if n == 1 {
		return lease.Snapshot{}, errTimeout
	}
	return snap, err
}

// A trusting store returns success for a swap that timed out.
type trusting struct{ lease.Store }

func (s trusting) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err == errTimeout {
		return lease.Snapshot{Record: next, Version: old.Version, Now: old.Now}, nil
	}
	return snap, err
}

// A remembering authority refuses a request if the record of its last answer leads to a refusal, even if
// the store has a newer record.
type remembering struct {
	lease.Authority
	last lease.Result
}

func (a *remembering) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if next, err := lease.Step(a.last.Record, req, time.Now()); err != nil {
		return lease.Result{Record: next, Now: time.Now()}, err
	}
	res, err := a.Authority.Do(ctx, name, req)
	if !res.Now.IsZero() {
		a.last = res
	}
	return res, err
}

// answers runs authorities over a store that loses requests.
func answers(t *testing.T, seed uint64, ownClock bool, over func(lease.Store) lease.Authority) (err error) {
	synctest.Test(t, func(t *testing.T) {
		s := &flaky{Store: &register{rand: rand.New(rand.NewPCG(seed, 1)), records: make([]lease.Record, 1)}, rand: rand.New(rand.NewPCG(seed, 2))}
		h := new(histories.History)
		authorities := make([]lease.Authority, 4)
		for i := range authorities {
			authorities[i] = over(h.Store(s))
		}
		h.Run(t.Context(), seed, "x", authorities, 20, 30*time.Millisecond)
		err = h.Check(histories.Options{OwnClock: ownClock})
	})
	return err
}

func TestRightAnswers(t *testing.T) {
	first := rand.Uint64()
	for seed := first; seed < first+100; seed++ {
		if err := answers(t, seed, seed%2 == 0, lease.NewAuthority); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	for what, over := range map[string]func(lease.Store) lease.Authority{
		"a time-out is taken for success":  func(s lease.Store) lease.Authority { return lease.NewAuthority(trusting{s}) },
		"a request is refused from memory": func(s lease.Store) lease.Authority { return &remembering{Authority: lease.NewAuthority(s)} },
	} {
		for _, ownClock := range []bool{true, false} {
			found := 0
			for seed := range uint64(100) {
				if answers(t, seed, ownClock, over) != nil {
					found++
				}
			}
			t.Logf("%s: found in %d of 100 histories (own clock: %v)", what, found, ownClock)
			if found < 20 {
				t.Errorf("%s: found in %d of 100 histories (own clock: %v)", what, found, ownClock)
			}
		}
	}
}
