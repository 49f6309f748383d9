package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of Available records that a [Store] remembers. A Store never forgets the
// 64 records that became Available most recently.
const Idle = 64 * shards

// newAbsence returns a new absence. An absence is an entry without a name, which stands for all names
// that the Store does not know. An absence is never modified.
func (s *Store) newAbsence(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.id.version(absenceKind, s.forgotten.Add(1))}
}

func (e *entry) isAbsence() bool { return e.name == "" }

// forget removes the entry e. A shard has one entry, called the absence, that stands for every name
// that the shard does not know. So that tokens never decrease, forget first replaces the absence by
// one whose Epoch is at least that of e. The new absence has a new version, so that a Swap with a
// Snapshot of the old absence returns a conflict.
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

// sweep forgets the oldest Available records if the shard has more than Idle/shards of them. Then
// sweep checks a few of the records that are not Available, and forgets those whose retention time is
// over. When sweep has checked all records that are not Available, it makes no further checks until
// the first of these records may be forgotten.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written during this round of checks must be remembered for at least
			// one retention time after the round has started. This also holds for a record that is
			// written after its check.
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

// dueAt returns the earliest time at which the Store may forget the record. The result is measured
// from the start of the Store's clock. At that time, the record has been Expired or Broken for as
// long as Options.Retention requires.
func (e *entry) dueAt(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return never // the lease is infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// never is the due time of a record that the Store must not forget. An injected clock can reach this
// time too.
const never time.Duration = math.MaxInt64

// add returns t+d. If the sum overflows, it returns never.
func add(t, d time.Duration) time.Duration {
	if d > never-max(t, 0) {
		return never
	}
	return t + d
}
