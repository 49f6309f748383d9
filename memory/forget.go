package memory

import (
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
// the shard's part of Idle, and those of the next few others that are over.
func (s *Store) sweep(sh *shard, looks int, now time.Time, elapsed time.Duration) {
	for sh.idle.size > Idle/shards {
		s.forget(sh, sh.idle.head)
	}
	for ; looks > 0 && sh.used.head != nil; looks-- {
		e := sh.used.head
		if e.over(s.retention, now, elapsed) {
			s.forget(sh, e)
		} else {
			sh.used.head = e.next
		}
	}
}

// over reports whether the record has been Expired or Broken for the retention.
func (e *entry) over(retention time.Duration, now time.Time, elapsed time.Duration) bool {
	switch {
	case !e.record.State.Locked():
		return elapsed-e.swapped >= retention
	case e.record.Until.IsZero():
		return false // infinite
	}
	return now.Sub(e.record.Until) >= retention
}
