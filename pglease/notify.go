package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// notifyChannel is the name of the PostgreSQL channel for notifications. The payload is the time of a
// change in microseconds, a space, and the name of a lease.
const notifyChannel = "lease"

// notifySQL notifies the watches of the given names, after the changes have been committed. A
// transaction that notifies locks the whole database until its commit is on the disk. The transaction
// of notifySQL does not wait for the disk, because it changes no table.
const notifySQL = `select count(pg_notify('` + notifyChannel + `', p)) from json_array_elements_text($1::json) p`

// notifyTimeout limits one attempt to notify. If it fails, each [listener] finds the change at its next
// sweep.
const notifyTimeout = 5 * time.Second

// A notifier sends notifications in batches. While it sends one, it collects the names for the next.
type notifier struct {
	send  func(ctx context.Context, payloads string) error
	tasks *tasks.Group

	mu      sync.Mutex
	next    *batch // nil if there is nothing to send
	sending bool
}

// A batch is a set of names of leases that have changed. One statement notifies the watches of all of them.
type batch struct {
	names map[string]time.Time // the time of the last change, by name
	sent  chan struct{}        // closed after the attempt to send, even if it failed
}

// notify adds the name of a changed lease, and the time of the change, to the next batch, and returns
// after the attempt to send it. If ctx is done before that, notify returns at once, but the batch is still
// sent.
func (n *notifier) notify(ctx context.Context, name string, changed time.Time) {
	n.mu.Lock()
	if n.next == nil {
		n.next = &batch{map[string]time.Time{}, make(chan struct{})}
	}
	b := n.next
	b.names[name] = changed
	if !n.sending {
		n.sending = true
		n.tasks.Start(n.run)()
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
