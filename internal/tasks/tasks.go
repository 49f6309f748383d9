// Package tasks runs functions that may never return or may exit their goroutine. Their owner can be closed.
//
// A function that panics crashes the process, as any panic does. Code that waits for it does not continue
// before the crash, not even if the function runs on a goroutine that recovers.
package tasks

import (
	"context"
	"sync"
)

// A Group counts tasks, so that its owner can wait until none is left. The zero Group has no tasks. It is
// safe for use by several goroutines at once. Unlike with a sync.WaitGroup, tasks may begin while another
// goroutine waits.
type Group struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when no task is left; nil: no caller waits
}

// Run calls f as a task.
func (g *Group) Run(f func()) {
	g.Begin()
	defer EvenOnExit(g.End)
	f()
}

// Start begins a task. The caller must call the returned function, which calls f on a new goroutine.
func (g *Group) Start(f func()) (start func()) {
	g.Begin()
	run := func() {
		defer EvenOnExit(g.End)
		f()
	}
	return func() { go run() }
}

// A Count counts the running calls of Ask that use it. The zero Count is zero.
type Count struct{ n int }

// Ask calls f on a new goroutine, as a task, and returns its answer. It returns false if f returns an error
// or exits its goroutine, or when ctx is done, even if f ignores it. If the Group is closed, the number of
// running calls with the same Count has reached most, or ctx is done before the goroutine runs, Ask returns
// false and does not call f. A Count must be used with only one Group.
func Ask[T any](ctx context.Context, g *Group, running *Count, most int, f func(context.Context) (T, error)) (answer T, ok bool) {
	if !g.beginAsking(running, most) {
		return answer, false
	}
	answers := make(chan T, 1)
	go func() {
		defer EvenOnExit(func() {
			g.endAsking(running)
			close(answers)
		})
		if ctx.Err() != nil {
			return
		}
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

// Close waits until there is a moment without a task, or returns ctx.Err() if ctx is done first. Once it is
// called, Ask no longer calls any function. Run and Start may still begin tasks, for which Close also waits
// if others are running. Close may be called more than once.
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

// Begin begins a task, which the caller must end with End.
func (g *Group) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
}

// End ends a task.
func (g *Group) End() {
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
	g.End()
}

// EvenOnExit is for use in a defer statement. It calls f if the surrounding function returns or exits its
// goroutine, but not if that function panics.
func EvenOnExit(f func()) {
	if panicked := recover(); panicked != nil {
		panic(panicked)
	}
	f()
}
