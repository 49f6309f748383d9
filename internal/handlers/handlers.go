// Package handlers keeps the functions that are registered for an event.
package handlers

import (
	"slices"
	"sync"
)

// A Set is the functions that are registered for an event with a T, in order of registration. The
// zero Set is empty. It may be used by any number of goroutines.
type Set[T any] struct {
	mu    sync.Mutex
	state *state[T] // nil: of an empty Set. Most Sets are empty, and there is one in every Session.
}

type state[T any] struct {
	list   []*handler[T]
	closed bool
}

type handler[T any] struct {
	f       func(T)
	removed bool
}

// made returns the state, and makes it if there is none. mu is held.
func (s *Set[T]) made() *state[T] {
	if s.state == nil {
		s.state = new(state[T])
	}
	return s.state
}

// Add adds f, which must not be nil. A function that is added twice is in the Set twice. Remove
// removes f and reports whether it was still in the Set; it does not wait for a call of f that has
// begun.
func (s *Set[T]) Add(f func(T)) (remove func() bool) {
	if f == nil {
		panic("a handler must not be nil")
	}
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

// Close makes every call that has not begun do nothing.
func (s *Set[T]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made().closed = true
}

// Calls returns a call for every function that is in the Set now. A call calls its function with
// arg, unless the function was removed, or the Set closed, meanwhile. If the function panics the
// call recovers, and passes the panic to panicked.
func (s *Set[T]) Calls(arg T, panicked func(any)) (calls []func()) {
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
