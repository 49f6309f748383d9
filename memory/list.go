package memory

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

// List returns the leases that the Store remembers whose names begin with prefix, sorted by name.
// It collects the names first, and reads each record when its turn comes. So it holds no lock
// while the body of the loop runs, and each entry is current when the body gets it. A name that
// was forgotten since the beginning of the list is left out. The only errors are that of a prefix
// that [lease.CheckName] refuses and that of a context that is done.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		names, err := s.names(prefix)
		for _, name := range names {
			if err = ctx.Err(); err != nil {
				break
			}
			if e, known := s.entry(name); known && !yield(e, nil) {
				return
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(lease.Entry{}, err)
		}
	}
}

// names returns the names that begin with prefix, sorted.
func (s *Store) names(prefix string) (names []string, err error) {
	if prefix != "" {
		if err := lease.CheckName(prefix); err != nil {
			return nil, err
		}
	}
	s.check()
	for i := range s.shards {
		names = s.shards[i].names(names, prefix)
	}
	slices.Sort(names)
	return names, nil
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

// entry returns what a list shows of the name, and false if the Store does not remember it.
func (s *Store) entry(name string) (lease.Entry, bool) {
	hash := s.hash(name)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.entry(hash, name)
	if e == nil {
		return lease.Entry{}, false
	}
	now, _ := s.clock.now()
	return lease.Entry{Name: name, Record: e.record.At(now), Now: now}, true
}
