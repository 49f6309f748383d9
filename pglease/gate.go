package pglease

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
)

// A gate decides which request gets the next connection of a pool. Urgent requests go first, and some
// connections are reserved for them: renewals, because a lease is lost if they are late, and requests
// that send notifications. A nil gate lets every request through at once.
type gate struct {
	size, spare int // all connections, and those that are reserved for urgent requests

	mu            sync.Mutex
	free          int
	urgent, other list.List // waiting requests, each a chan struct{}, in order of arrival
}

// newGate returns a gate for a pool of size connections, or nil if size is not positive, which means no
// limit.
func newGate(size int) *gate {
	if size <= 0 {
		return nil
	}
	spare := max(1, size/4)
	if size == 1 {
		spare = 0
	}
	return &gate{size: size, spare: spare, free: size}
}

// enter blocks until the request may use a connection. If ctx is done first, it returns a [*busyError].
func (g *gate) enter(ctx context.Context, urgent bool) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	queue, spare := &g.other, g.spare
	if urgent {
		queue, spare = &g.urgent, 0
	}
	if g.free > spare && queue.Len() == 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := queue.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // ctx ended just as the request got a connection: return the connection
		g.free++
		g.next()
	default:
		queue.Remove(place)
	}
	return &busyError{size: g.size, err: ctx.Err()}
}

// leave returns a connection to the gate.
func (g *gate) leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.next()
}

// next gives the free connections to waiting requests. The caller holds g.mu.
func (g *gate) next() {
	for g.free > 0 && g.urgent.Len() > 0 {
		g.pass(&g.urgent)
	}
	for g.free > g.spare && g.other.Len() > 0 {
		g.pass(&g.other)
	}
}

func (g *gate) pass(queue *list.List) {
	g.free--
	close(queue.Remove(queue.Front()).(chan struct{}))
}

// A busyError reports that a request got no connection in time.
type busyError struct {
	size     int  // connections of the pool; 0 if unknown
	sent     bool // true if the request was possibly sent after all
	renewals int  // statements of renewals that the request waited for; 0 if it waited for a connection
	err      error
}

func (e *busyError) Error() string {
	switch {
	case e.renewals > 0 && e.size > 0:
		return fmt.Sprintf("%d statements of renewals are under way, the most for a pool of %d: %v", e.renewals, e.size, e.err)
	case e.renewals > 0:
		return "other renewals are under way: " + e.err.Error()
	}
	return fmt.Sprintf("all %d connections of the pool are in use: %v", e.size, e.err)
}

func (e *busyError) Unwrap() error { return e.err }

// wasNotSent reports whether err proves that the request was not sent.
func wasNotSent(err error) bool {
	var busy *busyError
	return errors.As(err, &busy) && !busy.sent
}

// urgentKey is the context key that marks a request as urgent.
type urgentKey struct{}

func urgently(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

func isUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }
