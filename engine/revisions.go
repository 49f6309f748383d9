package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// A RevisionReader is an optional interface of an [Backend] whose Revisions order the entries of all names, and not
// only those of one name.
//
// The grace of a break counts from its commit. A Store that reads a break knows only that it was committed
// after the Store last knew the record to be unchanged. Without a RevisionReader, that is the last renewal. With a
// RevisionReader, a Store that watches a lease and holds it knows it more precisely: if it has written nothing for
// a fifteenth of the duration of the lease, at most 4 s, it asks for the Revision. One request serves all
// leases of the Store.
type RevisionReader interface {
	// Revision returns a number. Every entry with a higher Revision, under any name, is committed after the
	// call of Revision begins.
	Revision(ctx context.Context) (int64, error)
}

const (
	readsPerDuration = 15
	longestDuration  = time.Minute            // a longer duration counts as this one
	readsApart       = 100 * time.Millisecond // the shortest time between two reads
	mostRevisions    = 8
	revisionTimeout  = 5 * time.Second
)

// A knownRevision says that every entry with a higher Revision was committed after a time.
type knownRevision struct {
	revision int64
	after    time.Duration
}

// The revisions are the last few that the Store has read or written, oldest first. More than one is kept, because
// an entry can reach the Store after it has read a higher Revision.
type revisions []knownRevision

// add adds a revision, unless the last one is almost as new.
func (r *revisions) add(revision int64, after time.Duration) {
	if n := len(*r); n > 0 {
		switch last := (*r)[n-1]; {
		case after < last.after+readsApart:
			return
		case revision < last.revision: // the engine has lost writes
			*r = nil
		case n == mostRevisions:
			*r = slices.Delete(*r, 0, 1)
		}
	}
	*r = append(*r, knownRevision{revision, after})
}

// earliest returns a time after which an entry with the given Revision was committed, or known, another
// such time, if that is later.
func (r revisions) earliest(revision int64, known time.Duration) time.Duration {
	for _, one := range r {
		if one.revision < revision {
			known = max(known, one.after)
		}
	}
	return known
}

// startReading starts the goroutine that asks the engine for its Revision, until the last watch has ended.
// The caller holds s.mu.
func (s *Store) startReading() {
	r, ok := s.backend.(RevisionReader)
	if !ok || s.stopReading != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopReading = cancel
	go func() {
		c := cmp.Or[lease.Clock](s.clock.Clock(), clock.System{})
		for wait := time.Duration(0); clock.Sleep(ctx, c, wait) == nil; {
			if wait = s.untilRead(); wait > 0 {
				continue
			}
			asking, done := clock.WithTimeout(ctx, c, revisionTimeout)
			revision, sentAt, err := s.readRevision(asking, r)
			done()
			if err != nil {
				wait = time.Second
				continue
			}
			s.mu.Lock()
			s.revisions.add(revision, sentAt)
			s.mu.Unlock()
		}
	}()
}

// readRevision returns the Revision of the engine, and the elapsed time after which it was asked for. The request is
// urgent, because it serves all leases that are held.
func (s *Store) readRevision(ctx context.Context, r RevisionReader) (revision int64, sentAt time.Duration, err error) {
	leave, err := s.enter(ctx, Request{Urgent: true})
	if err != nil {
		return 0, 0, err
	}
	sentAt = s.clock.Elapsed()
	revision, err = r.Revision(ctx)
	leave(err)
	return revision, sentAt, err
}

// untilRead returns the time until the next read of the Revision is due, or a second if the Store holds no watched lease.
func (s *Store) untilRead() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, holds := longestDuration, false
	for name := range s.observations.pins {
		if o := s.observations.get(name, false); o != nil && o.own {
			due, holds = min(due, o.Record.Duration), true
		}
	}
	switch n := len(s.revisions); {
	case !holds:
		return time.Second
	case n == 0:
		return 0
	default:
		return s.revisions[n-1].after + max(due/readsPerDuration, readsApart) - s.clock.Elapsed()
	}
}
