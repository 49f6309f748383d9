package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle limits how many records in the state Available a Store keeps. The limit is 4096. The Store never
// deletes the 64 records that became Available most recently.
const Idle = 64 * shards

// newAbsence returns a new common entry for all names that the Store does not know. This entry is called the
// absence. It has no name and is never modified.
func (s *Store) newAbsence(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.id.version(absenceKind, s.forgotten.Add(1))}
}

func (e *entry) isAbsence() bool { return e.name == "" }

// The method forget first replaces the common entry of all unknown names with a new one. Then it removes the
// entry e, so that the name of e becomes one of the unknown names. The Epoch of the new common entry is not
// lower than that of e, so that the tokens of the name never decrease. The new common entry has a new
// version, so that a Swap with the version of the removed entry returns a conflict.
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

// The method sweep deletes the oldest Available records until the shard has at most Idle/shards of them. Then
// it checks a few of the other records, and deletes those whose retention time is over. Several calls of
// sweep together make one round, in which they check all of the other records. During a round, the calls also
// compute when the first of the remaining records may be deleted. The next round does not start before that
// time.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// If a record is written during this round, the Store must keep it for at least one retention
			// time from now.
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

// dueAt returns the earliest time at which the Store may delete the record. Like the parameter elapsed, the
// result is the time since the start of the Store's clock. An Expired or Broken record must stay for at least
// the retention time.
func (e *entry) dueAt(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return never // the lease is infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// The method dueAt returns the constant never for a record that the Store must not delete. An injected clock
// can return an elapsed time that is as large as this constant. Therefore the method sweep also checks that
// the result of dueAt differs from the constant.
const never time.Duration = math.MaxInt64

// add returns t+d, or never if the sum overflows.
func add(t, d time.Duration) time.Duration {
	if d > never-max(t, 0) {
		return never
	}
	return t + d
}
