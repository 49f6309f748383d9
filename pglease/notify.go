package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// channel is the one that is notified. A payload is the time of a change in microseconds, a space,
// and the name of a lease.
const channel = "lease"

// notify signals the watches of the names. A commit that notifies takes a lock of the whole database
// and keeps it until it is on the disk, so that such commits come one after the other. Therefore
// the statements that change a lease do not notify. This one follows them, for many at once. It
// changes no table, so its commit does not wait for the disk.
const notify = `select count(pg_notify('` + channel + `', p)) from json_array_elements_text($1::json) p`

// notifyWithin bounds one try to notify. The sweep of [listener] finds what is not notified.
const notifyWithin = 5 * time.Second

// mustSignal reports whether this change of a record must be signalled. See SPEC S7.
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

// endsEarlier reports whether a is before b. A zero time is an end that never comes.
func endsEarlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// A notifier gathers names while it sends others.
type notifier struct {
	send  func(ctx context.Context, payloads string) error
	tasks *tasks

	mu      sync.Mutex
	next    *batch // nil: there is nothing to send
	sending bool
}

// A batch is names that are sent together.
type batch struct {
	names map[string]time.Time // of the last change of each
	sent  chan struct{}        // closed when they were sent, or could not be
}

// notify sends a name and the time of its change, with others that are sent at the same time. It returns when the name was
// sent, could not be, or the context is done; then it is still sent.
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

// run sends for as long as there is something to send.
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
		text, _ := json.Marshal(payloads) // of valid UTF-8
		ctx, cancel := context.WithTimeout(context.Background(), notifyWithin)
		_ = n.send(ctx, string(text)) // if it fails, the sweep of a listener makes up for it
		cancel()
		close(b.sent)
	}
}
