package pglease

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
)

// A gate hands out the connections of a pool by importance. A renewal that comes late loses its
// lease, and an acquire that comes late is only late. So an urgent request is let through before
// every other one, and a part of the connections is kept for urgent requests. A nil gate lets
// everything through.
type gate struct {
	size, spare int // connections, and how many of them only urgent requests get

	mu            sync.Mutex
	free          int
	urgent, other list.List // of chan struct{}: the requests that wait, in order
}

// newGate returns a gate for a pool of that size, and nil for a pool without a bound.
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

// enter waits for a connection. Its error is a [*busyError].
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
	case <-turn: // in the same moment
		g.free++
		g.next()
	default:
		queue.Remove(place)
	}
	return &busyError{g.size, false, ctx.Err()}
}

// leave gives a connection back.
func (g *gate) leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.next()
}

// next lets requests through for as long as there are connections for them. The mutex is held.
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

// A busyError says that a request got no connection in time.
type busyError struct {
	size int  // of the pool; zero: nothing is known of it
	sent bool // it may have got one, and may have been sent
	err  error
}

func (e *busyError) Error() string {
	if e.size == 0 {
		return "other renewals are under way: " + e.err.Error()
	}
	return fmt.Sprintf("all %d connections of the pool are in use: %v", e.size, e.err)
}

func (e *busyError) Unwrap() error { return e.err }

// unsent reports whether a request was certainly not sent.
func unsent(err error) bool {
	var busy *busyError
	return errors.As(err, &busy) && !busy.sent
}

// urgentKey marks the context of a renewal.
type urgentKey struct{}

func urgently(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

func isUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }
