package leasetest

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/fencedlease/lease"
)

// A remoteStore is a client of a plainStore behind a connection that can fail. Its bugs are those of a
// client that handles a failed connection wrongly.
type remoteStore struct {
	*plainStore
	transmit Transmit

	mu      sync.Mutex
	reading map[string]*sharedLoad // used by a client that shares answers
}

type sharedLoad struct {
	done chan struct{}
	snap lease.Snapshot
	err  error
}

func connectStore(bug string) func(testing.TB, Transmit) lease.Store {
	return func(_ testing.TB, transmit Transmit) lease.Store {
		return newRemoteStore(newPlainStore(bug), transmit)
	}
}

func newRemoteStore(of *plainStore, transmit Transmit) *remoteStore {
	return &remoteStore{plainStore: of, transmit: transmit, reading: map[string]*sharedLoad{}}
}

func (s *remoteStore) Load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	if s.bug == "shares the answer of a load that is under way" {
		return s.share(ctx, name)
	}
	snap, err = s.load(ctx, name)
	if err != nil && s.bug == "takes a failed load for an absent record" {
		return lease.Snapshot{Version: "none", Now: s.time()}, nil
	}
	return snap, err
}

func (s *remoteStore) load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	failed := s.transmit(ctx, func() error {
		snap, err = s.plainStore.Load(ctx, name)
		return nil
	})
	if failed != nil {
		return lease.Snapshot{}, failed
	}
	return snap, err
}

func (s *remoteStore) share(ctx context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	l := s.reading[name]
	if l != nil {
		s.mu.Unlock()
		<-l.done
		return l.snap, l.err
	}
	l = &sharedLoad{done: make(chan struct{})}
	s.reading[name] = l
	s.mu.Unlock()
	l.snap, l.err = s.load(ctx, name)
	s.mu.Lock()
	delete(s.reading, name)
	s.mu.Unlock()
	close(l.done)
	return l.snap, l.err
}

func (s *remoteStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	if s.bug == "reads the time of a swap in a message of its own" {
		if now, err := s.load(ctx, name); err != nil || now.Record.At(old.Now) != now.Record.At(now.Now) {
			return now, cmp.Or(err, error(lease.ErrConflict))
		}
	}
	swap := func() (failed error) {
		return s.transmit(ctx, func() error {
			snap, err = s.plainStore.Swap(ctx, name, old, next)
			return nil
		})
	}
	failed := swap()
	if failed != nil && s.bug == "sends a swap again that got no answer" {
		failed = swap()
	}
	if failed == nil {
		return snap, err
	}
	return lease.Snapshot{Record: next, Version: "none", Now: old.Now}, failed
}

func (s *remoteStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		failed := s.transmit(ctx, func() error { return nil })
		if failed != nil {
			if s.bug != "ends a list without an error when the connection fails" {
				yield(lease.Entry{}, failed)
			}
			return
		}
		s.plainStore.List(ctx, prefix)(yield)
	}
}
