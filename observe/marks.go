package observe

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/clock"
)

// A Reviser is an optional interface of an [Engine] whose Revisions order the entries of all names, and not
// only those of one name.
//
// The grace of a break counts from its commit. A Store that reads a break knows only that it was committed
// after the Store last knew the record to be unchanged. Without a Reviser, that is the last renewal. With a
// Reviser, a Store that watches a lease and holds it knows it more precisely: if it has written nothing for
// a fifteenth of the duration of the lease, at most 4 s, it asks for the Revision. One request serves all
// leases of the Store.
type Reviser interface {
	// Revision returns a number. Every entry with a higher Revision, under any name, is committed after the
	// call of Revision begins.
	Revision(ctx context.Context) (int64, error)
}

const (
	marksPerDuration = 15
	longestDuration  = time.Minute            // a longer duration counts as this one
	marksApart       = 100 * time.Millisecond // the shortest time between two marks
	mostMarks        = 8
	revisionTimeout  = 5 * time.Second
)

// A mark says that every entry with a Revision above the given one was committed after a time.
type mark struct {
	revision int64
	after    time.Duration
}

// The marks are the last few marks, oldest first. More than one is kept, because an entry can reach
// the Store after a mark with a higher Revision.
type marks []mark

// add adds a mark, unless the last mark is almost as new.
func (m *marks) add(revision int64, after time.Duration) {
	if n := len(*m); n > 0 {
		switch last := (*m)[n-1]; {
		case after < last.after+marksApart:
			return
		case revision < last.revision: // the engine has lost writes
			*m = nil
		case n == mostMarks:
			*m = slices.Delete(*m, 0, 1)
		}
	}
	*m = append(*m, mark{revision, after})
}

// earliest returns a time after which an entry with the given Revision was committed, or known, another
// such time, if that is later.
func (m marks) earliest(revision int64, known time.Duration) time.Duration {
	for _, one := range m {
		if one.revision < revision {
			known = max(known, one.after)
		}
	}
	return known
}

// startMarking starts the goroutine that asks the engine for its Revision, until the last watch has ended.
// The caller holds s.mu.
func (s *Store) startMarking() {
	r, ok := s.engine.(Reviser)
	if !ok || s.stopMarking != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopMarking = cancel
	go func() {
		c := cmp.Or[lease.Clock](s.clock.Clock(), clock.System{})
		for wait := time.Duration(0); clock.Sleep(ctx, c, wait) == nil; {
			if wait = s.untilMark(); wait > 0 {
				continue
			}
			asking, done := clock.WithTimeout(ctx, c, revisionTimeout)
			revision, sentAt, err := s.revision(asking, r)
			done()
			if err != nil {
				wait = time.Second
				continue
			}
			s.mu.Lock()
			s.marks.add(revision, sentAt)
			s.mu.Unlock()
		}
	}()
}

// revision returns the Revision of the engine, and the elapsed time after which it was asked for. The request is
// urgent, because it serves all leases that are held.
func (s *Store) revision(ctx context.Context, r Reviser) (revision int64, sentAt time.Duration, err error) {
	leave, err := s.enter(ctx, engine.Request{Urgent: true})
	if err != nil {
		return 0, 0, err
	}
	sentAt = s.clock.Elapsed()
	revision, err = r.Revision(ctx)
	leave(err)
	return revision, sentAt, err
}

// untilMark returns the time until the next mark is due, or a second if the Store holds no watched lease.
func (s *Store) untilMark() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, holds := longestDuration, false
	for name := range s.observations.pins {
		if o := s.observations.get(name, false); o != nil && o.own {
			due, holds = min(due, o.Record.Duration), true
		}
	}
	switch n := len(s.marks); {
	case !holds:
		return time.Second
	case n == 0:
		return 0
	default:
		return s.marks[n-1].after + max(due/marksPerDuration, marksApart) - s.clock.Elapsed()
	}
}
