package session

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// handlers are the functions registered for one kind of event, in order of registration.
type handlers[T any] struct{ list []*handler[T] }

type handler[T any] struct {
	f    func(T)
	gone atomic.Bool
}

func (hs *handlers[T]) add(f func(T)) *handler[T] {
	h := &handler[T]{f: f}
	hs.list = append(hs.list, h)
	return h
}

// remove reports whether h was still there.
func (hs *handlers[T]) remove(h *handler[T]) bool {
	i := slices.Index(hs.list, h)
	if i < 0 {
		return false
	}
	h.gone.Store(true)
	hs.list = slices.Delete(hs.list, i, i+1)
	return true
}

// dispatch calls every handler that is registered now, each in a goroutine of its own that
// Close waits for. It must be called with s.mu held.
func dispatch[T any](s *Session, hs *handlers[T], arg T) {
	for _, h := range hs.list {
		s.begin()
		s.handling++
		go func() {
			defer s.finish()
			leave := handling.enter()
			defer func() {
				leave()
				s.mu.Lock()
				s.handling--
				s.mu.Unlock()
				if r := recover(); r != nil {
					s.report(r)
				}
			}()
			if !h.gone.Load() {
				h.f(arg)
			}
		}()
	}
}

func (s *Session) report(panicked any) {
	log := s.o.Logger
	if log == nil {
		log = slog.Default()
	}
	log.Error("lease: a handler panicked", "name", s.name, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}

// handling are the goroutines that run a handler, of whatever Session.
var handling goroutines

// goroutines are a set of them, by number. Close may be called inside a handler and must not
// wait for it; nothing but this number tells that call from one on another goroutine. (A
// handler gets no context that could carry it, and a frame on the stack does not say whose.)
type goroutines struct{ numbers sync.Map }

// enter adds the calling goroutine.
func (g *goroutines) enter() (leave func()) {
	n := number()
	g.numbers.Store(n, nil)
	return func() { g.numbers.Delete(n) }
}

// inside reports whether the calling goroutine is one of them.
func (g *goroutines) inside() bool {
	_, in := g.numbers.Load(number())
	return in
}

// number returns that of the calling goroutine.
func number() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseUint(string(digits), 10, 64)
	return n
}
