package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// A RevisionReader is a [Backend] whose Revisions order the entries of all names, and not only those of one
// name. With such a Backend, a holder whose lease is broken can go on with its work for a longer part of the
// grace period.
//
// The grace period begins when the break is committed, but the holder's Store does not know when this
// happened. The Store therefore counts the grace period from the latest time at which it is certain that the
// record was unchanged. Without a RevisionReader, this is the time of the last renewal, or of the last poll
// that called [Store.Observe]. With a RevisionReader, the Store also reads the Revision from time to time
// while it holds and watches a lease but writes nothing. If the lease has a duration of 30 s, the Store reads
// the Revision when it has written nothing for 2 s. If the lease has a duration of one minute or more, the
// Store does so when it has written nothing for 4 s. One such request serves all leases of the Store.
type RevisionReader interface {
	// Revision returns a number that is lower than the Revision of every entry that is committed after
	// Revision was called. This must be true for the entries of all names.
	Revision(ctx context.Context) (int64, error)
}

const (
	readsPerDuration = 15
	longestDuration  = time.Minute            // a lease with a longer duration counts as one with this duration
	readsApart       = 100 * time.Millisecond // the shortest time between two reads
	mostRevisions    = 8
	revisionTimeout  = 5 * time.Second
)

// A knownRevision says that every entry with a higher Revision was committed after a certain time.
type knownRevision struct {
	revision int64
	after    time.Duration
}

// The revisions are the last few that the Store has read or written, oldest first. A Store that remembered
// only its newest Revision could not date every entry, because an entry can reach the Store after the Store
// has read a higher Revision.
type revisions []knownRevision

// add adds a revision, unless the last one is almost as new.
func (r *revisions) add(revision int64, after time.Duration) {
	if n := len(*r); n > 0 {
		switch last := (*r)[n-1]; {
		case after < last.after+readsApart:
			return
		case revision < last.revision: // the server has lost writes
			*r = nil
		case n == mostRevisions:
			*r = slices.Delete(*r, 0, 1)
		}
	}
	*r = append(*r, knownRevision{revision, after})
}

// The method earliest returns the earliest time at which an entry with the given Revision can have been
// committed. The last parameter is the earliest such time that the caller knows already. If the revisions
// prove that the entry was committed later, the method returns a later time.
func (r revisions) earliest(revision int64, known time.Duration) time.Duration {
	for _, one := range r {
		if one.revision < revision {
			known = max(known, one.after)
		}
	}
	return known
}

// startReading starts a goroutine that reads the Revision of the Backend until the last watch has ended. The
// caller holds s.mu.
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

// readRevision reads the Revision of the Backend. Its second result is the time at which the request was
// sent, as elapsed time of the Store's clock. The request is urgent, because it serves all held leases.
func (s *Store) readRevision(ctx context.Context, r RevisionReader) (revision int64, sentAt time.Duration, err error) {
	err = s.gate.Do(ctx, Request{Urgent: true}, func() (err error) {
		sentAt = s.clock.Elapsed()
		revision, err = r.Revision(ctx)
		return err
	})
	return revision, sentAt, err
}

// untilRead returns the time until the next read of the Revision is due, or a second if the Store holds no
// watched lease.
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
