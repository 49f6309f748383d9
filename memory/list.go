package memory

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// List returns the leases in the Store whose names begin with prefix, sorted by name. List first collects the
// names, and then reads each record just before the body of the loop gets it, so that each entry is current.
// No lock is held while the body runs. A name whose record is deleted during the iteration may be missing.
//
// The iteration ends with an error if ctx is done, or if the prefix is neither empty nor a valid name
// ([lease.CheckName]).
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		for _, name := range s.names(prefix) {
			e, known := s.entry(name)
			if ctx.Err() != nil || known && !yield(e, nil) {
				break
			}
		}
		return nil
	})
}

// names returns the sorted names that begin with prefix.
func (s *Store) names(prefix string) (names []string) {
	s.check()
	for i := range s.shards {
		names = s.shards[i].names(names, prefix)
	}
	slices.Sort(names)
	return names
}

func (sh *shard) names(names []string, prefix string) []string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, e := range sh.entries {
		for ; e != nil; e = e.same {
			if strings.HasPrefix(e.name, prefix) {
				names = append(names, e.name)
			}
		}
	}
	return names
}

// entry returns the record of the given name as an Entry for List, or false if the Store has no such record.
func (s *Store) entry(name string) (lease.Entry, bool) {
	hash := s.hash(name)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.entry(hash, name)
	if e == nil {
		return lease.Entry{}, false
	}
	now, _ := s.clock.Now()
	return lease.Entry{Name: name, Record: e.record.At(now), Now: now}, true
}
