package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of records that are Available that a [Store] remembers. It always remembers
// at least the Idle/64 records that became Available last.
const Idle = 64 * shards

// absent makes an absence: an entry without a name that stands for every name that the Store does not
// know. It never changes.
func (s *Store) absent(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.term.version(ofAbsence, s.forgotten.Add(1))}
}

func (e *entry) absent() bool { return e.name == "" }

// forget removes the entry. Before that it replaces the absence by one with a new version and an Epoch
// that is not below the entry's. So tokens do not fall, and a swap that was decided on an older absence
// is a conflict. Such a swap is a conflict even if it is for another unknown name, because the Store
// remembers nothing about unknown names.
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

// sweep forgets the oldest records that are Available, if there are more than the shard's part of Idle.
// Then it checks some of the other entries in turn, and forgets those that are due. When all were
// checked once, it checks none until the first of them can be due.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is put from now on is due after the retention at the earliest, even if it
			// replaces one that this turn has checked.
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

// add returns t+d, or the longest Duration if that is less.
func add(t, d time.Duration) time.Duration {
	if d > math.MaxInt64-max(t, 0) {
		return math.MaxInt64
	}
	return t + d
}
