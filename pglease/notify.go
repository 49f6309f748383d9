package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// notifyChannel is the name of the PostgreSQL channel for notifications. A payload has the time of a change
// in microseconds, a space, and the name of the lease.
const notifyChannel = "lease"

// notifySQL sends notifications of changes that have been committed. A transaction that sends a notification
// locks the whole database until its commit is on the disk. This statement does not wait for the disk,
// because it changes no table.
const notifySQL = `select count(pg_notify('` + notifyChannel + `', p)) from json_array_elements_text($1::json) p`

// notifyTimeout limits one attempt to send notifications. If the attempt fails, each [listener] finds the
// changes at its next sweep.
const notifyTimeout = 5 * time.Second

// A notifier sends notifications in batches. While a notifier sends a batch, it collects the next one.
type notifier struct {
	send  func(ctx context.Context, payloads string) error
	tasks *tasks.Group

	mu      sync.Mutex
	next    *batch // nil if there is nothing to send
	sending bool
}

type batch struct {
	names map[string]time.Time // the time of the last change, by name
	sent  chan struct{}        // closed after the attempt to send, even if it failed
}

// notify adds the name of a changed lease, and the time of the change, to the next batch, and returns after
// the attempt to send the batch. If ctx is done before that, notify returns at once, but the batch is still
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
