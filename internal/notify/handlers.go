// Package notify keeps the functions to call, and the contexts to cancel, at an event such as the loss of a
// lease.
package notify

import (
	"slices"
	"sync"
)

// Handlers are the functions that are registered for an event with an argument of type T, in the order of
// registration. The zero Handlers is empty. It is safe for use by several goroutines at once.
type Handlers[T any] struct {
	mu    sync.Mutex
	state *state[T] // nil if there are none. Every Session has Handlers, and most of them are empty.
}

type state[T any] struct {
	list   []*handler[T]
	closed bool
}

type handler[T any] struct {
	f       func(T)
	removed bool
}

// made returns s.state, which it first creates if it is nil. The caller must hold mu.
func (s *Handlers[T]) made() *state[T] {
	if s.state == nil {
		s.state = new(state[T])
	}
	return s.state
}

// Add adds f, which must not be nil. A function that is added twice is called twice. The function remove
// removes f and reports whether f was still there. It does not wait for a call of f that has begun.
func (s *Handlers[T]) Add(f func(T)) (remove func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, st := &handler[T]{f: f}, s.made()
	st.list = append(st.list, h)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		was := !h.removed
		h.removed = true
		st.list = slices.DeleteFunc(st.list, func(other *handler[T]) bool { return other == h })
		return was
	}
}

// Close disables every call that has not begun.
func (s *Handlers[T]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made().closed = true
}

// Calls returns one function for each registered function. It calls the registered function with arg, unless
// that was removed or Close was called in the meantime. A panic is recovered and passed to panicked.
func (s *Handlers[T]) Calls(arg T, panicked func(any)) (calls []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil
	}
	for _, h := range s.state.list {
		calls = append(calls, func() {
			s.mu.Lock()
			over := h.removed || s.state.closed
			s.mu.Unlock()
			if over {
				return
			}
			defer func() {
				if p := recover(); p != nil {
					panicked(p)
				}
			}()
			h.f(arg)
		})
	}
	return calls
}
