package leasetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

func (s *plainStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" && s.bug != "takes any prefix" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		names := s.names(prefix)
		if s.bug == "lists a cache" && s.listed != nil {
			names = slices.DeleteFunc(slices.Clone(s.listed), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		}
		s.listed = names
		const page = 10
		for shown := 0; ; shown++ {
			if s.bug == "pages by offset" && shown%page == 0 {
				names = s.names(prefix)
			}
			if err := ctx.Err(); err != nil && s.bug != "ends a list without an error" {
				yield(lease.Entry{}, err)
				return
			}
			if shown >= len(names) || ctx.Err() != nil {
				return
			}
			if s.bug == "ends a list at what it cannot read" && s.spoilt[names[shown]] {
				yield(lease.Entry{}, lease.ErrCorrupt)
				return
			}
			e, err := s.entry(names[shown])
			if s.bug == "lists no more than it can read" && err != nil {
				continue
			}
			if s.bug == "lists what is infinite twice" && e.Record.Duration == lease.Infinite && !yield(e, err) {
				return
			}
			if !yield(e, err) && s.bug != "goes on when the loop has ended" {
				return
			}
		}
	}
}

// names are the names of what a list shows.
func (s *plainStore) names(prefix string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[name]
		begins := strings.HasPrefix(name, prefix)
		switch s.bug {
		case "takes a prefix for a pattern":
			flat := strings.NewReplacer("/", "|") // a pattern's star matches no slash
			begins, _ = path.Match(flat.Replace(prefix)+"*", flat.Replace(name))
		case "takes prefixes in any case":
			begins = strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
		case "lists what is leased only":
			begins = begins && r.State == lease.Leased
		}
		if begins && r.State != lease.Available {
			names = append(names, name)
		}
	}
	return names
}

func (s *plainStore) entry(name string) (lease.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoilt[name] {
		return lease.Entry{Name: name}, fmt.Errorf("%w: the record of %q", lease.ErrCorrupt, name)
	}
	snap := s.current(name)
	if s.bug == "lists records as they were written" {
		return lease.Entry{Name: name, Record: snap.Record, Now: snap.Now}, nil
	}
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}, nil
}
