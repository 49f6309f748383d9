package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A shard is the part of a Store that holds the names whose hashes end alike. It is two cache
// lines, which no other shard shares, and what a renewal touches is in the first of them.
type shard struct {
	mu      sync.Mutex
	swaps   uint64                        // numbers the versions of the entries
	recent  *entry                        // found last: a Swap mostly follows a Load of the same name
	entries map[uint64]*entry             // by the hash of the name, the first of each
	watches map[string]map[watch]struct{} // by name, of names that have any
	idle    queue                         // entries that are Available, the longest so at the head
	_       [8]byte

	used queue // entries that are not Available; the head is looked at next
	peak int   // most entries since the map was made, which does not shrink by itself

	turn    int           // entries of used that are still to be looked at before rest is known
	soonest time.Duration // when the first of those that were looked at is due, in time elapsed
	rest    time.Duration // none of used is due before
	_       [16]byte
}

// entry returns the entry of the name, which has that hash, nil if there is none.
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
	version    string        // empty: it was not shown yet, and nobody can have it
	swapped    time.Duration // when the record was put here, in time elapsed
	same       *entry        // the next of the same hash, which there hardly ever is
	prev, next *entry        // in the queue that follows from the record's State; nil: in none yet
}

// ended reports whether the record has come to its Until.
func (e *entry) ended(now time.Time) bool {
	return !e.record.Until.IsZero() && !now.Before(e.record.Until)
}

// add makes an entry, in no queue yet.
func (sh *shard) add(hash uint64, name string) *entry {
	if sh.entries == nil {
		sh.entries = make(map[uint64]*entry)
	}
	e := &entry{name: name, same: sh.entries[hash]}
	sh.entries[hash], sh.recent = e, e
	sh.peak = max(sh.peak, len(sh.entries))
	return e
}

// put gives the entry its next record, and its place in the queue of it.
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

// remove takes the entry out.
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

// A queue is a ring of entries. To turn it by one is to move the head.
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
