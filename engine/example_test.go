package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/session"
)

// A shelf is a Backend in memory. It stands for a server without a clock that can compare and swap.
type shelf struct {
	mu      sync.Mutex
	writes  int64 // of all names, so that no two entries have the same version
	entries map[string]engine.Entry
	watches engine.Watches[struct{}]
}

// entry returns the entry of a name. One that was never written is in the state Available, and has a version, too.
func (s *shelf) entry(name string) engine.Entry {
	e := s.entries[name]
	e.Version = strconv.FormatInt(e.Revision, 10)
	return e
}

func (s *shelf) Load(_ context.Context, name string) (engine.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry(name), nil
}

func (s *shelf) Open(ctx context.Context, name string) (engine.Entry, error) {
	return s.Load(ctx, name)
}

func (s *shelf) Swap(_ context.Context, name, version string, next engine.Retained) (engine.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.entry(name)
	if old.Version != version {
		return old, lease.ErrConflict
	}
	s.writes++
	s.entries[name] = engine.Entry{Retained: next, Revision: s.writes}
	if renewed := next.Record == old.Record && next.Left >= old.Left; !renewed {
		s.watches.Signal(name)
	}
	return s.entry(name), nil
}

func (s *shelf) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.watches.Add(ctx, name, struct{}{})
}

func (s *shelf) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		s.mu.Lock()
		all := map[string]engine.Entry{}
		for name := range s.entries {
			all[name] = s.entry(name)
		}
		s.mu.Unlock()
		for name, e := range all {
			if strings.HasPrefix(name, prefix) && !yield(engine.NamedEntry{Name: name, Entry: e}, nil) {
				return nil
			}
		}
		return nil
	})
}

// A small store for a server without a clock. The engine computes when leases end, the Gate sends renewals first, and
// package leasetest tests the store.
func Example() {
	store, err := engine.NewStore(&shelf{entries: map[string]engine.Entry{}}, &engine.Options{Gate: engine.NewGate(64)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 2 {
		l, err := session.New(store.Authority(), "report", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = session.Run(ctx, l, func(_ context.Context, tok lease.Token) error {
			fmt.Println("writes the report, with token", tok)
			return nil
		}, nil)
		if err != nil {
			fmt.Println(err)
		}
	}
	for e, err := range store.List(ctx, "") {
		fmt.Println(e.Name, e.Record.State, err)
	}
	// Output:
	// writes the report, with token 00000000000000000001
	// writes the report, with token 00000000000000000002
	// report available <nil>
}
