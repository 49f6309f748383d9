package memory

import (
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Idle is the largest number of Available records that a [Store] remembers. A Store always remembers
// at least the Idle/64 records that became Available last.
const Idle = 64 * shards

// absent returns a new absence. An absence is an entry without a name that stands for every name that
// the Store does not know. An absence is never modified.
func (s *Store) absent(epoch uint64) *entry {
	return &entry{record: lease.Record{Epoch: epoch}, version: s.term.version(ofAbsence, s.forgotten.Add(1))}
}

func (e *entry) absent() bool { return e.name == "" }

// forget removes the entry. It first replaces the absence by a new one, whose Epoch is at least the
// Epoch of the entry. So tokens never decrease. The new absence also has a new version. So a swap
// that was decided on an older absence is a conflict. All unknown names share the absence, because
// the Store remembers nothing about them. So even a swap for another unknown name is a conflict.
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

// sweep forgets the oldest Available records if the shard has more than its share of Idle. Then it
// checks some of the other entries in turn, and forgets those that are due. After a full round of
// checks, sweep checks no entry until the first of them can be due.
func (s *Store) sweep(sh *shard, checks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; checks > 0 && elapsed >= sh.rest && sh.used.head != nil; checks-- {
		if sh.turn <= 0 {
			// A record that is written later is due after the retention at the earliest. This also
			// holds for a record that replaces one that was checked in this round.
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

// due returns the elapsed time at which the record will have been Expired or Broken for the
// retention.
func (e *entry) due(retention time.Duration, now time.Time, elapsed time.Duration) time.Duration {
	switch {
	case !e.record.State.Locked():
		return add(e.swapped, retention)
	case e.record.Until.IsZero():
		return math.MaxInt64 // infinite
	}
	return add(add(elapsed, e.record.Until.Sub(now)), retention)
}

// add returns t+d, or the longest Duration if t+d is longer than that.
func add(t, d time.Duration) time.Duration {
	if d > math.MaxInt64-max(t, 0) {
		return math.MaxInt64
	}
	return t + d
}
