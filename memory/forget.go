package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle, which is 4096, is the largest number of Available records that a [Store] remembers. A Store
// never forgets the 64 records that became Available most recently.
const Idle = 64 * shards

// newAbsence returns a new absence. An absence is an entry without a name, which stands for all
// names that the Store does not know. An absence is never modified.
func (s *Store) newAbsence(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.id.version(absenceKind, s.forgotten.Add(1))}
}

func (e *entry) isAbsence() bool { return e.name == "" }

// The method forget removes the entry e. Before the removal, forget replaces s.absence, the entry
// for all unknown names. The new entry has an Epoch that is at least the Epoch of e, so that the
// tokens of the name of e never decrease. The new entry has a new version, so a Swap with the
// version of the old entry returns a conflict.
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

// sweep first forgets the oldest Available records, until the shard has at most Idle/shards of
// them. sweep then checks a few records that are not Available. If the retention time of a checked
// record is over, sweep forgets the record. Many calls of sweep form one round of checks, which
// covers all records that are not Available. Each round computes the earliest time at which the
// Store is allowed to forget one of the remaining records. The next round starts at that time or
// later.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written during this round of checks is due no earlier than one
			// retention time after the start of the round.
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

// dueAt returns the earliest time at which the Store may forget the record. The result of dueAt is
// measured from the start of the Store's clock. The Store must remember an Expired or Broken record
// for at least the retention time.
func (e *entry) dueAt(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return never // the lease is infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// For a record that the Store must not forget, dueAt returns the constant never. The method sweep
// checks for this constant, because the elapsed time of an injected clock can be as large as the
// constant.
const never time.Duration = math.MaxInt64

// add returns t+d. If the sum overflows, add returns the constant never.
func add(t, d time.Duration) time.Duration {
	if d > never-max(t, 0) {
		return never
	}
	return t + d
}
