package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of Available records that a [Store] remembers. A Store always remembers
// at least the Idle/64 records that became Available most recently.
const Idle = 64 * shards

// newAbsence returns a new absence. An absence is an entry without a name, which stands for all names
// that the Store does not know. An absence is never modified.
func (s *Store) newAbsence(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.term.version(ofAbsence, s.forgotten.Add(1))}
}

func (e *entry) isAbsence() bool { return e.name == "" }

// forget removes the entry. It first replaces the absence, which is the entry that stands for all
// unknown names. The new absence has at least the Epoch of the removed entry, so that tokens never
// decrease. It also has a new version, so that a Swap returns a conflict if it is based on the old
// absence.
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

// sweep forgets the oldest Available records if the shard has more than Idle/shards of them. Then it
// checks the next few records that are not Available, and forgets those whose retention is over. Once
// every such record has been checked, there are no more checks until the first of them can be
// forgotten.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written after the start of this round stays for at least the
			// retention. It stays even if it replaces a record that was already checked in this
			// round.
			sh.turn, sh.soonest = sh.used.size, add(elapsed, s.retention)
		}
		e := sh.used.head
		if due := e.dueAt(s.retention, now, elapsed); due <= elapsed {
			s.forget(sh, e)
		} else {
			sh.used.head, sh.soonest = e.next, min(sh.soonest, due)
		}
		if sh.turn--; sh.turn == 0 {
			sh.rest = sh.soonest
		}
	}
}

// dueAt returns the elapsed time of the clock at which the Store may forget the record. At that time,
// the record has been Expired or Broken for as long as Options.Retention requires.
func (e *entry) dueAt(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return math.MaxInt64 // infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// add returns t+d. If the sum overflows, it returns the longest Duration.
func add(t, d time.Duration) time.Duration {
	if d > math.MaxInt64-max(t, 0) {
		return math.MaxInt64
	}
	return t + d
}
