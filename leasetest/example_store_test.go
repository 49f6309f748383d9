package leasetest_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

// A Shelf is a simple store. It keeps its records in a map, and each swap gets a new version.
type Shelf struct {
	start time.Time // the time is measured from start, because a wall clock can be set back
	mu    sync.Mutex
	swaps int
	snaps map[string]lease.Snapshot
}

func (s *Shelf) read(name string) lease.Snapshot {
	snap := s.snaps[name]
	if snap.Version == "" {
		snap.Version = "never"
	}
	snap.Now = s.start.Add(time.Since(s.start)).Round(0).UTC()
	return snap
}

func (s *Shelf) Load(_ context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(name), lease.CheckName(name)
}

func (s *Shelf) Swap(_ context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := next.ValidateAfter(old.Record); err != nil {
		return lease.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.read(name)
	over := now.Record.At(now.Now) != now.Record.At(old.Now) // the lease has ended since the old snapshot
	if now.Version != old.Version || over {
		return now, lease.ErrConflict
	}
	s.swaps++
	s.snaps[name] = lease.Snapshot{Record: next, Version: strconv.Itoa(s.swaps)}
	return s.read(name), nil
}

func NewShelf(testing.TB) lease.Store {
	return &Shelf{start: time.Now(), snaps: map[string]lease.Snapshot{}}
}

// One call tests your own store against SPEC.md. Options.Can declares its abilities.
func ExampleTestStore() {
	_ = func(t *testing.T) { // in a file of tests: func TestShelf(t *testing.T)
		leasetest.TestStore(t, NewShelf, &leasetest.Options{
			Bubble: true, // a Shelf runs in this process and reads the time from package time
		})
	}
}
