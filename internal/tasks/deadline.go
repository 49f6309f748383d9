package tasks

import (
	"context"
	"sync"
	"time"
)

// A deadline is a context with the values of another one. It ends when its owner calls end, and not when
// the other one ends. Unlike a context of package context, it allocates nothing until its channel is asked
// for, and its owner can use one timer for this and for other things.
type deadline struct {
	context.Context // has the values
	at              time.Time

	mu    sync.Mutex
	err   error
	done  chan struct{}        // nil until it is asked for
	after map[*func()]struct{} // called when the context ends
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *deadline) Deadline() (time.Time, bool) { return c.at, true }

func (c *deadline) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.done != nil:
	case c.err != nil:
		c.done = closed
	default:
		c.done = make(chan struct{})
	}
	return c.done
}

func (c *deadline) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is what package context looks for in a context that it did not make, so that a context that is
// derived from this one needs no goroutine.
func (c *deadline) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*func()]struct{})
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[&f]
		delete(c.after, &f)
		return waits
	}
}

// end ends the context with the given error, unless it has ended.
func (c *deadline) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}
