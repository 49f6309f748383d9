package histories_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
)

// A register is a very simple store behind a slow network, and can have one error.
type register struct {
	mu      sync.Mutex
	rand    *rand.Rand
	records []lease.Record
	wrong   string
}

func (s *register) delay() {
	s.mu.Lock()
	d := time.Duration(s.rand.Int64N(int64(4 * time.Millisecond)))
	s.mu.Unlock()
	time.Sleep(d)
}

func (s *register) hit(wrong string, n int) bool { return s.wrong == wrong && s.rand.IntN(n) == 0 }

func (s *register) at(i int) lease.Snapshot {
	now := time.Now()
	if s.wrong == "its time goes back" && s.rand.IntN(40) == 0 {
		now = now.Add(-20 * time.Millisecond)
	}
	r := s.records[i]
	if r.ID.IsZero() { // the epoch of a name without a lease may rise at any time
		r.Epoch = max(r.Epoch, uint64(time.Now().UnixMilli()))
		if s.wrong == "its tokens begin again after a write" {
			r.Epoch = 0
		}
	}
	return lease.Snapshot{Record: r, Version: "v-" + strconv.Itoa(i), Now: now.UTC()}
}

func (s *register) Load(context.Context, string) (lease.Snapshot, error) {
	s.delay()
	defer s.delay()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.records) - 1
	if s.hit("it reads what is stale", 30) {
		i = max(0, i-2)
	}
	return s.at(i), nil
}

func (s *register) Swap(_ context.Context, _ string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.delay()
	defer s.delay()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.at(len(s.records) - 1)
	late := old.Now.Before(last.Record.Until) && !time.Now().Before(last.Record.Until)
	switch {
	case late && s.wrong != "it does not look at the time":
		return lease.Snapshot{}, lease.ErrConflict
	case old.Version != last.Version && !s.hit("it does not compare", 4):
		if s.hit("it applies what conflicts", 4) {
			s.records = append(s.records, next)
		}
		return lease.Snapshot{}, lease.ErrConflict
	}
	if s.hit("it keeps less than it was given", 5) {
		next.Duration = next.Duration/2 + 1
	}
	if !s.hit("it loses what it acknowledged", 20) {
		s.records = append(s.records, next)
	} else {
		snap := s.at(len(s.records) - 1)
		snap.Record, snap.Version = next, "v-"+strconv.Itoa(len(s.records))
		return snap, nil
	}
	return s.at(len(s.records) - 1), nil
}

func run(t *testing.T, seed uint64, wrong string) (exchanges int, err error) {
	synctest.Test(t, func(t *testing.T) {
		s := &register{rand: rand.New(rand.NewPCG(seed, 1)), records: make([]lease.Record, 1), wrong: wrong}
		stores := []lease.Store{s, s, s, s}
		h := histories.Run(t.Context(), seed, "x", stores, 20, 30*time.Millisecond)
		err, exchanges = h.Check(histories.Options{OwnClock: true}), h.Len()
	})
	return exchanges, err
}

func TestRight(t *testing.T) {
	first := rand.Uint64()
	for seed := first; seed < first+100; seed++ {
		if n, err := run(t, seed, ""); err != nil || n < 80 {
			t.Fatalf("seed %d: %d exchanges: %v", seed, n, err)
		}
	}
}

// For each error, the checker must find a violation in at least 20 of 100 histories.
func TestWrong(t *testing.T) {
	for _, wrong := range []string{
		"it reads what is stale", "it does not compare", "it applies what conflicts", "it loses what it acknowledged",
		"it does not look at the time", "its time goes back", "it keeps less than it was given",
		"its tokens begin again after a write",
	} {
		t.Run(wrong, func(t *testing.T) {
			found := 0
			for seed := range uint64(100) {
				if _, err := run(t, seed, wrong); err != nil {
					found++
				}
			}
			t.Logf("found in %d of 100 histories", found)
			if found < 20 {
				t.Errorf("found in %d of 100 histories", found)
			}
		})
	}
}
