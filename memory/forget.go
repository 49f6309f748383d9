package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is how many records that are Available a [Store] remembers at most. Whatever else
// happens, the last Idle/64 of them are remembered.
const Idle = 64 * shards

// absent makes an absence: an entry without a name, which is shown under every name that
// the Store does not know and is never changed.
func (s *Store) absent(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.term.version(ofAbsence, s.forgotten.Add(1))}
}

func (e *entry) absent() bool { return e.name == "" }

// forget takes the entry out. Before anybody can see that it is gone, a new absence is
// shown, with an Epoch not below the entry's and a version of its own: so tokens do not
// fall, and a swap that was decided on an absence from before the name came and went is a
// conflict. It is one for every other unknown name as well: the price of remembering
// nothing about any of them.
func (s *Store) forget(sh *shard, e *entry) {
	for {
		old := s.absence.Load()
		if s.absence.CompareAndSwap(old, s.absent(max(old.record.Epoch, e.record.Epoch))) {
			break
		}
	}
	sh.remove(s.hash(e.name), e)
	sh.signal(e.name)
}

// sweep forgets the records that became Available the longest ago, if there are more than
// the shard's part of Idle, and those of the next few others that are due. Once every entry was
// looked at in its turn, none is looked at again before the first of them can be due.
func (s *Store) sweep(sh *shard, looks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; looks > 0 && elapsed >= sh.rest && sh.used.head != nil; looks-- {
		if sh.turn <= 0 {
			// What is put from now on, be it in the place of what this turn has looked at, is due
			// after the retention at the earliest.
			sh.turn, sh.soonest = sh.used.size, add(elapsed, s.retention)
		}
		e := sh.used.head
		if due := e.due(s.retention, now, elapsed); due <= elapsed {
			s.forget(sh, e)
		} else {
			sh.used.head, sh.soonest = e.next, min(sh.soonest, due)
		}
		if sh.turn--; sh.turn == 0 {
			sh.rest = sh.soonest
		}
	}
}

// due is when the record will have been Expired or Broken for the retention, in time elapsed.
func (e *entry) due(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return math.MaxInt64 // infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// add returns t+d, and the longest Duration if that is less. The retention and the time elapsed are
// not negative.
func add(t, d time.Duration) time.Duration {
	if d > math.MaxInt64-max(t, 0) {
		return math.MaxInt64
	}
	return t + d
}
