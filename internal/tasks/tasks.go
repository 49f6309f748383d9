// Package tasks runs functions that may never return, or may end their goroutine, on behalf of an
// owner that can be closed.
//
// A function that panics ends the process, as any panic does. Until it has ended, nothing that
// waits for the function goes on: not even if the panic is on a goroutine that recovers.
package tasks

import (
	"context"
	"sync"
)

// A Group counts tasks, so that its owner can wait until none is left. The zero Group has none. It
// may be used by any number of goroutines; unlike those of a sync.WaitGroup its tasks may begin
// while another goroutine waits.
type Group struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when no task is left; nil: no caller waits
}

// Run calls f, as a task.
func (g *Group) Run(f func()) {
	g.begin()
	defer Finally(g.end)
	f()
}

// Start begins a task. The function that it returns must be called, and calls f on a goroutine of
// its own.
func (g *Group) Start(f func()) (start func()) {
	g.begin()
	return func() {
		go func() {
			defer Finally(g.end)
			f()
		}()
	}
}

// A Count is how many calls of Ask with it are running. The zero Count is none.
type Count struct{ n int }

// Ask calls f on a goroutine of its own, as a task, and returns what f answers. It returns false if
// f returns an error or ends its goroutine, or if ctx ends first: Ask does not wait for an f that
// does not keep to its context. It returns false without a call if the Group is closed, or if most
// calls with the same Count, which belongs to the Group, are running.
func Ask[T any](ctx context.Context, g *Group, running *Count, most int, f func(context.Context) (T, error)) (answer T, ok bool) {
	if !g.beginAsking(running, most) {
		return answer, false
	}
	answers := make(chan T, 1)
	go func() {
		defer Finally(func() {
			g.endAsking(running)
			close(answers)
		})
		if answer, err := f(ctx); err == nil {
			answers <- answer
		}
	}()
	select {
	case answer, ok = <-answers:
	case <-ctx.Done():
	}
	return answer, ok
}

// Close waits until there is a moment without a task. If ctx ends first it returns its error. From
// the call on Ask calls nothing; a task that Ask does not begin may still begin, and is waited for
// if others are running. Close may be called again.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.running == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Group) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
}

func (g *Group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

func (g *Group) beginAsking(running *Count, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || running.n >= most {
		return false
	}
	g.running++
	running.n++
	return true
}

func (g *Group) endAsking(running *Count) {
	g.mu.Lock()
	running.n--
	g.mu.Unlock()
	g.end()
}

// Finally, in a defer statement, calls f when the function returns and when it ends its goroutine,
// but not when it panics.
func Finally(f func()) {
	if panicked := recover(); panicked != nil {
		panic(panicked)
	}
	f()
}
