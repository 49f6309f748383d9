package notify

import (
	"context"
	"slices"
	"sync"
)

// A ContextSet has contexts that are canceled together, with one cause. The zero ContextSet is empty. Its
// methods may be called while locks are held, and by several goroutines at once.
type ContextSet struct {
	mu   sync.Mutex
	list []*Context
}

// A Context is canceled together with its set, or by its own End.
type Context struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	cause error // the cause of the cancellation; nil until the cause is decided
}

// NewContext makes a Context that belongs to no ContextSet.
func NewContext(ctx context.Context) *Context {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Context{Context: ctx, cancel: cancel}
}

// End cancels the Context with the given cause, or with that of its set if that has ended first. Call it when
// the Context is no longer needed, without holding locks. It may be called more than once.
func (c *Context) End(cause error) { c.cancel(c.decide(cause)) }

// decide returns the cause of the cancellation, which is that of the first call.
func (c *Context) decide(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	return c.cause
}

// Add adds a Context.
func (s *ContextSet) Add(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, c)
}

// Remove removes a Context, if it is in s.
func (s *ContextSet) Remove(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *Context) bool { return other == c })
}

// End empties s and decides the cause for each Context that was in it. The returned function cancels them. Call
// it without holding locks, because canceling a context may call arbitrary functions.
func (s *ContextSet) End(cause error) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	for _, c := range list {
		c.decide(cause)
	}
	return func() {
		for _, c := range list {
			c.End(cause)
		}
	}
}
