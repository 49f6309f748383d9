package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of Available records that a [Store] remembers. A Store always remembers
// at least the Idle/64 records that became Available last.
const Idle = 64 * shards

// absent returns a new absence. An absence is an entry without a name. It stands for all names that
// the Store does not know. An absence is never modified.
func (s *Store) absent(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.term.version(ofAbsence, s.forgotten.Add(1))}
}

func (e *entry) absent() bool { return e.name == "" }

// forget removes the entry. It first replaces the absence, the entry that stands for all unknown
// names. The Epoch of the new absence is at least the Epoch of the removed entry, so that tokens
// never decrease. The new absence also has a new version, so that a Swap based on the old absence is
// a conflict. Such a conflict can concern any unknown name, because all unknown names share one
// absence.
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

// sweep forgets the oldest Available records if the shard has more than Idle/shards of them. Then it
// checks some of the other entries in turn, and forgets those that are due. After every entry was
// checked once, sweep makes no checks until the first entry can be due.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written later is due after the retention at the earliest. Such a
			// record may even replace one that was already checked in this round.
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

// due returns the elapsed time at which the Store may forget the record. At that time, the record has
// been Expired or Broken for the retention.
func (e *entry) due(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
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
