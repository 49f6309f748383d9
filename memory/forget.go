package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of Available records that a Store keeps: 4096. The Store never deletes the 64
// records that became Available most recently.
const Idle = 64 * shards

// newAbsence returns a new absence: an entry without a name, which stands for all names that the Store does
// not know, and is never modified.
func (s *Store) newAbsence(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.id.version(absenceKind, s.forgotten.Add(1))}
}

func (e *entry) isAbsence() bool { return e.name == "" }

// forget removes the entry e. Before that, it replaces s.absence, the entry that stands for all unknown
// names. The new absence has an Epoch that is at least the Epoch of e, so that the tokens of the name never
// decrease, and a new version, so that a Swap with the version of the old entry returns a conflict.
func (s *Store) forget(sh *shard, e *entry) {
	for {
		old := s.absence.Load()
		if s.absence.CompareAndSwap(old, s.newAbsence(max(old.record.Epoch, e.record.Epoch))) {
			break
		}
	}
	sh.remove(s.hash(e.name), e)
	sh.signal(e.name)
}

// sweep deletes the oldest Available records until the shard has at most Idle/shards of them. Then it
// checks a few of the other records, and deletes those whose retention time is over. In one round of
// many calls, it checks all of them, and computes the earliest time at which a remaining record may be
// deleted. The next round starts at that time or later.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written in this round is due one retention time after its start, or later.
			sh.turn, sh.soonest = sh.used.size, add(elapsed, s.retention)
		}
		e := sh.used.head
		if due := e.dueAt(s.retention, now, elapsed); due <= elapsed && due != never {
			s.forget(sh, e)
		} else {
			sh.used.head, sh.soonest = e.next, min(sh.soonest, due)
		}
		if sh.turn--; sh.turn == 0 {
			sh.rest = sh.soonest
		}
	}
}

// dueAt returns the earliest time at which the Store may delete the record, measured from the start of
// the Store's clock. An Expired or Broken record must be remembered for at least the retention time.
func (e *entry) dueAt(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return never // the lease is infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// never is the result of dueAt for a record that the Store must not delete. The method sweep checks for
// it, because the elapsed time of an injected clock can be as large.
const never time.Duration = math.MaxInt64

// add returns t+d, or never if the sum overflows.
func add(t, d time.Duration) time.Duration {
	if d > never-max(t, 0) {
		return never
	}
	return t + d
}
