package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A shard is the part of a Store that holds the names whose hashes have the same last bits. It fills
// two cache lines, and a renewal uses mainly the first one.
type shard struct {
	mu      sync.Mutex
	swaps   uint64                        // numbers the versions of the entries
	recent  *entry                        // found last: a Swap usually follows a Load of the same name
	entries map[uint64]*entry             // by the hash of the name, the first of each
	watches map[string]map[watch]struct{} // by name, of names that have any
	idle    queue                         // entries that are Available; the head became so first
	_       [8]byte

	used queue // entries that are not Available; the head is checked next
	peak int   // most entries since the map was made; a map does not shrink by itself

	turn    int           // how many entries of used are to be checked before rest is known
	soonest time.Duration // when the first of the checked entries is due, in time elapsed
	rest    time.Duration // no entry of used is due earlier
	_       [16]byte
}

// entry returns the entry of the name with that hash, or nil.
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

// An entry is a record that is remembered.
type entry struct {
	name       string
	record     lease.Record
	number     uint64        // of the swap that put the record here, unlike any other of the shard
	version    string        // empty until it is first shown
	swapped    time.Duration // when the record was put here, in time elapsed
	same       *entry        // the next entry with the same hash, which is rare
	prev, next *entry        // in the queue for the record's State; nil if in none yet
}

// ended reports whether the record has come to its Until.
func (e *entry) ended(now time.Time) bool {
	return !e.record.Until.IsZero() && !now.Before(e.record.Until)
}

// add adds an entry that is in no queue yet.
func (sh *shard) add(hash uint64, name string) *entry {
	if sh.entries == nil {
		sh.entries = make(map[uint64]*entry)
	}
	e := &entry{name: name, same: sh.entries[hash]}
	sh.entries[hash], sh.recent = e, e
	sh.peak = max(sh.peak, len(sh.entries))
	return e
}

// put sets the record of the entry and moves the entry to the right queue.
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

// remove removes the entry.
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

// A queue is a ring of entries. Moving the head turns it.
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
