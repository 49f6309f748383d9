package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// notifyChannel is the name of the PostgreSQL channel for notifications. The payload of a
// notification is the time of a change in microseconds, a space, and the name of a lease.
const notifyChannel = "lease"

// notifySQL is the SQL that notifies the watches of names. A transaction that notifies locks the
// whole database until its commit is on the disk, so such transactions commit one after the other.
// Therefore the statements that change a lease do not notify. After those statements, notifySQL
// notifies for many names at once. The commit of notifySQL does not wait for the disk, because
// notifySQL changes no table.
const notifySQL = `select count(pg_notify('` + notifyChannel + `', p)) from json_array_elements_text($1::json) p`

// notifyTimeout is the timeout of one attempt to notify. If the attempt to notify fails, the sweep
// of a [listener] finds the change.
const notifyTimeout = 5 * time.Second

// mustSignal reports whether the waiters must be signalled after next has replaced old. See SPEC
// S7.
func mustSignal(old, next lease.Record) bool {
	switch {
	case next.State == lease.Breaking && old.State != lease.Breaking:
		return true
	case !old.State.Locked():
		return false
	case !next.State.Locked(), next.ID != old.ID, next.Owner != old.Owner:
		return true
	}
	return endsEarlier(next.Until, old.Until)
}

// endsEarlier reports whether a lease that ends at a ends before a lease that ends at b. A zero
// time means that the lease never ends.
func endsEarlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// A notifier sends notifications in batches. While it sends one batch, it collects the next one.
type notifier struct {
	send  func(ctx context.Context, payloads string) error
	tasks *tasks

	mu      sync.Mutex
	next    *batch // nil if there is nothing to send
	sending bool
}

// A batch is a set of changed names whose watches are notified in one statement.
type batch struct {
	names map[string]time.Time // the time of the last change, by name
	sent  chan struct{}        // closed after the attempt to send, even if it failed
}

// notify adds a name and the time of its change to the next batch. It returns after the attempt to
// send the batch, even if the attempt failed. If ctx is done before the attempt, notify returns at
// once, and the batch is still sent.
func (n *notifier) notify(ctx context.Context, name string, changed time.Time) {
	n.mu.Lock()
	if n.next == nil {
		n.next = &batch{map[string]time.Time{}, make(chan struct{})}
	}
	b := n.next
	b.names[name] = changed
	if !n.sending {
		n.sending = true
		n.tasks.run(n.run)
	}
	n.mu.Unlock()
	select {
	case <-b.sent:
	case <-ctx.Done():
	}
}

// run sends batches until none is left.
func (n *notifier) run() {
	for {
		n.mu.Lock()
		b := n.next
		n.next, n.sending = nil, b != nil
		n.mu.Unlock()
		if b == nil {
			return
		}
		payloads := make([]string, 0, len(b.names))
		for name, changed := range b.names {
			payloads = append(payloads, fmt.Sprint(changed.UnixMicro(), " ", name))
		}
		text, _ := json.Marshal(payloads) // cannot fail for strings
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		_ = n.send(ctx, string(text)) // if it fails, the sweep of a listener finds the changes
		cancel()
		close(b.sent)
	}
}
