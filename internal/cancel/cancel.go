// Package cancel ends contexts together, with one cause.
package cancel

import (
	"context"
	"slices"
	"sync"
)

// A Set is contexts that end together. Its methods may be called with locks held. The zero Set is
// empty. It may be used by any number of goroutines.
type Set struct {
	mu   sync.Mutex
	list []*Context
}

// A Context ends with its Set, or by itself.
type Context struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	cause error // with which it ends, once that is decided
}

// New makes a Context that belongs to no Set.
func New(ctx context.Context) *Context {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Context{Context: ctx, cancel: cancel}
}

// End ends the Context with the given cause, or with that of its Set if the Set has decided to end
// it before. End must be called once the Context is no longer needed, and without locks. It may be
// called again.
func (c *Context) End(cause error) { c.cancel(c.decide(cause)) }

// decide returns the cause with which the Context ends: the first that is decided.
func (c *Context) decide(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	return c.cause
}

// Add adds a Context.
func (s *Set) Add(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, c)
}

// Remove removes a Context, if it is in the Set.
func (s *Set) Remove(c *Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *Context) bool { return other == c })
}

// End empties the Set, and decides to end each Context that was in it with the given cause. The
// function that it returns ends them, and must be called without locks: the end of a context may
// call anything.
func (s *Set) End(cause error) (end func()) {
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
