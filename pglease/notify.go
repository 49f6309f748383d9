package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// channel is the name of the PostgreSQL channel for notifications. A payload is the time of a
// change in microseconds, a space, and the name of a lease.
const channel = "lease"

// notify is the SQL that notifies the watches of names. A commit that notifies locks the whole
// database until it is on the disk, so such commits run one after the other. Therefore the
// statements that change a lease do not notify. This statement is sent after them, for many names
// at once. The statement changes no table, so its commit does not wait for the disk.
const notify = `select count(pg_notify('` + channel + `', p)) from json_array_elements_text($1::json) p`

// notifyWithin is the timeout of one attempt to notify. If the attempt fails, the sweep of a
// [listener] finds the change.
const notifyWithin = 5 * time.Second

// mustSignal reports whether the change of a record from was to next must be signalled. See SPEC
// S7.
func mustSignal(was, next lease.Record) bool {
	switch {
	case next.State == lease.Breaking && was.State != lease.Breaking:
		return true
	case !was.State.Locked():
		return false
	case !next.State.Locked(), next.ID != was.ID, next.Owner != was.Owner:
		return true
	}
	return endsEarlier(next.Until, was.Until)
}

// endsEarlier reports whether the end a comes before the end b. A zero time means no end.
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

// A batch is a set of names that are notified in one statement.
type batch struct {
	names map[string]time.Time // the time of the last change, by name
	sent  chan struct{}        // closed after the attempt to send, even if it failed
}

// notify adds a name and the time of its change to the next batch. notify returns after the attempt
// to send the batch, even if the attempt failed. If ctx is done first, notify returns early, and
// the batch is still sent.
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
		ctx, cancel := context.WithTimeout(context.Background(), notifyWithin)
		_ = n.send(ctx, string(text)) // if it fails, the sweep of a listener finds the changes
		cancel()
		close(b.sent)
	}
}
