package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A shard has the entries of some names. The hash of a name selects its shard. A shard fills two cache lines,
// and a renewal mainly uses the first one.
type shard struct {
	mu      sync.Mutex
	swaps   uint64                    // the number of swaps; each swap numbers the version that it writes
	recent  *entry                    // the entry found last, because a Swap usually follows a Load of the same name
	entries map[uint64]*entry         // maps the hash of a name to the first entry with that hash
	watches *engine.Watches[struct{}] // nil until the first watch
	idle    queue                     // entries that are Available; the head became Available first
	_       [8]byte

	used queue // entries that are not Available; the head is checked next
	peak int   // the largest size of the map entries; a map does not shrink by itself

	turn    int           // the number of entries in used that the current round of checks must still check
	soonest time.Duration // the elapsed time at which the first of the checked entries is due
	rest    time.Duration // no entry in used is due before this elapsed time
	_       [16]byte
}

// The method entry finds the entry of a name, which has the given hash. It returns nil if the shard has no
// entry of this name.
func (sh *shard) entry(hash uint64, name string) *entry {
	if sh.recent == nil || sh.recent.name != name {
		e := sh.entries[hash]
		for e != nil && e.name != name {
			e = e.same
		}
		sh.recent = e
	}
	return sh.recent
}

// An entry is a record in the Store, with the name of the lease and the version.
type entry struct {
	name       string
	record     lease.Record
	number     uint64        // the number of the swap that wrote the record; unique in the shard
	version    string        // empty until a Snapshot needs it
	swapped    time.Duration // the elapsed time at which the record was written
	same       *entry        // the next entry with the same hash, which is rare
	prev, next *entry        // the neighbors in the queue that contains the entry; nil before the first put
}

// The method ended reports whether the lease or its break period is over at the given time.
func (e *entry) ended(now time.Time) bool {
	return !e.record.Until.IsZero() && !now.Before(e.record.Until)
}

// add adds an entry for the name. The entry is in no queue until put is called.
func (sh *shard) add(hash uint64, name string) *entry {
	if sh.entries == nil {
		sh.entries = make(map[uint64]*entry)
	}
	e := &entry{name: name, same: sh.entries[hash]}
	sh.entries[hash], sh.recent = e, e
	sh.peak = max(sh.peak, len(sh.entries))
	return e
}

// put stores a record in the entry, and moves the entry to another queue if necessary. Entries that are
// Available are in sh.idle, and all others in sh.used.
func (sh *shard) put(e *entry, next lease.Record, number uint64, elapsed time.Duration) {
	from := sh.queue(e)
	e.record, e.number, e.version, e.swapped = next, number, "", elapsed
	to := sh.queue(e)
	queued := e.next != nil
	if queued && from == to {
		return
	}
	if queued {
		from.remove(e)
	}
	to.push(e)
}

// remove removes the entry. If few entries are left, it copies them to a new map to free memory.
func (sh *shard) remove(hash uint64, e *entry) {
	sh.queue(e).remove(e)
	sh.unlink(hash, e)
	sh.recent = nil
	if n := len(sh.entries); sh.peak > 512 && n < sh.peak/8 {
		entries := make(map[uint64]*entry, n)
		maps.Copy(entries, sh.entries)
		sh.entries, sh.peak = entries, n
	}
}

func (sh *shard) unlink(hash uint64, e *entry) {
	first := sh.entries[hash]
	switch {
	case first != e:
		for first.same != e {
			first = first.same
		}
		first.same = e.same
	case e.same != nil:
		sh.entries[hash] = e.same
	default:
		delete(sh.entries, hash)
	}
}

func (sh *shard) queue(e *entry) *queue {
	if e.record.State == lease.Available {
		return &sh.idle
	}
	return &sh.used
}

// A queue is a circular list of entries. Set head to the next entry to rotate it.
type queue struct {
	head *entry
	size int
}

func (q *queue) push(e *entry) {
	if q.head == nil {
		q.head, e.prev, e.next = e, e, e
	} else {
		e.prev, e.next = q.head.prev, q.head
		e.prev.next, e.next.prev = e, e
	}
	q.size++
}

func (q *queue) remove(e *entry) {
	if q.head == e {
		q.head = e.next
	}
	if q.head == e {
		q.head = nil
	}
	e.prev.next, e.next.prev = e.next, e.prev
	q.size--
}
