package tasks

import (
	"context"
	"sync"
	"time"
)

// A deadline is a context with the values of another one. It ends when its owner calls end, and not when
// the other one ends. Unlike a context of package context, it allocates nothing until its channel is asked
// for, its owner can use one timer for this and for other things, and it can be put off: see [Wait].
type deadline struct {
	context.Context // has the values
	limit           time.Duration
	patience        time.Time // how long the request may wait to be sent

	mu    sync.Mutex
	at    time.Time
	phase phase
	sent  time.Time // zero unless the request has waited
	err   error
	done  chan struct{}        // nil until it is asked for
	after map[*func()]struct{} // called when the context ends
}

// A phase says how far a request has got.
type phase uint8

const (
	fresh phase = iota
	waiting
	sent
)

// Patience says how long a request may wait to be sent. It may be used for one call of [Call]. End may be called
// at any time, and more than once.
type Patience struct {
	Until time.Time

	mu    sync.Mutex
	ended bool
	of    *deadline // nil before the call
}

// give passes the patience to the context of the request.
func (p *Patience) give(c *deadline) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of = c; !p.ended {
		c.patience = p.Until
	}
}

// End ends the patience. If the request is waiting, its context ends with context.Canceled, so that the request is not
// sent any more. If the request was sent, End does nothing.
func (p *Patience) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.of != nil {
		p.of.endWait()
	}
}

// Wait says that the request with this context waits to be sent for the first time, because the server is
// busy. If it is one of [Call], it may wait as long as the [Patience] that Call got, and its time limit begins
// when [Sent] is called. Otherwise thousands of requests that wait would end in vain, and be made again.
func Wait(ctx context.Context) {
	c, ok := ctx.Value(deadlineKey{}).(*deadline)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == fresh && c.at.Before(c.patience) {
		c.phase, c.at = waiting, c.patience
	}
}

// Sent says that the request with this context is sent now. Whoever calls Wait calls Sent before each
// exchange with the server, also if the request did not wait.
func Sent(ctx context.Context) {
	c, ok := ctx.Value(deadlineKey{}).(*deadline)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == waiting {
		c.sent = time.Now()
		c.at = c.sent.Add(c.limit)
	}
	c.phase = sent
}

// SentAt returns when Sent was called for a request that had waited, and otherwise the zero time.
func SentAt(ctx context.Context) time.Time {
	c, ok := ctx.(*deadline)
	if !ok {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

type deadlineKey struct{}

func (c *deadline) Value(key any) any {
	if key == (deadlineKey{}) {
		return c
	}
	return c.Context.Value(key)
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *deadline) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, true
}

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

// expire ends the context if its time has come. Otherwise it returns how long that still takes.
func (c *deadline) expire(now time.Time) (left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left = c.at.Sub(now); left > 0 && c.err == nil {
		return left
	}
	c.endLocked(context.DeadlineExceeded)
	return 0
}

func (c *deadline) endWait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.patience = (time.Time{}); c.phase == waiting {
		c.endLocked(context.Canceled)
	}
}

// end ends the context with the given error, unless it has ended.
func (c *deadline) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}

func (c *deadline) endLocked(err error) {
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
