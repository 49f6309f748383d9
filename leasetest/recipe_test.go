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

// A shelf is a store by the recipe of lease.Store, with one counter of versions for all names.
type shelf struct {
	mu    sync.Mutex
	count int
	snaps map[string]lease.Snapshot
}

func (s *shelf) look(name string) lease.Snapshot {
	snap, known := s.snaps[name]
	if !known {
		snap.Version = strconv.Itoa(s.count)
	}
	snap.Now = time.Now().UTC()
	return snap
}

func (s *shelf) Load(_ context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(name), lease.CheckName(name)
}

func (s *shelf) Swap(_ context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := next.ValidateAfter(old.Record); err != nil {
		return lease.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.look(name)
	if now.Version != old.Version || now.Record.At(now.Now) != now.Record.At(old.Now) {
		return now, lease.ErrConflict
	}
	s.count++
	s.snaps[name] = lease.Snapshot{Record: next, Version: strconv.Itoa(s.count)}
	return s.look(name), nil
}

// A store whose names share one counter of versions passes: another name's write makes a swap of an
// absence conflict.
func TestSharedVersions(t *testing.T) {
	leasetest.TestStore(t, func(testing.TB) lease.Store {
		return &shelf{snaps: map[string]lease.Snapshot{}}
	}, &leasetest.Options{Bubble: true})
}
