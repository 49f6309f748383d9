package session

import (
	"slices"
	"time"
)

// handlers are the functions registered for one kind of event, in order of registration.
type handlers[T any] struct{ list []*handler[T] }

type handler[T any] struct {
	f    func(T)
	gone bool // it was unregistered
}

// OnLost registers f as [lease.Lease] says. A panic in f is logged; it stops nothing else.
func (s *Session) OnLost(f func(error)) (stop func() bool) { return register(s, &s.onLost, f) }

// OnBreaking registers f to be called when the Session learns that its lease is breaking: it
// will be lost at until, on the Session's clock. It is the time to finish and to Release. The
// contexts of [Session.WhileHeld] end a StopWindow before that. If the end of the break moves
// earlier by more than Margin f is called again. Handlers run as those of OnLost do.
//
// The Session learns of a break when it next renews, at most RenewInterval and RequestTimeout
// later, or with Options.Watch as soon as it has asked. A break with less grace than that ends the
// lease before its holder knows: then only the fencing token protects what the holder writes.
func (s *Session) OnBreaking(f func(until time.Time)) (stop func() bool) {
	return register(s, &s.onBreak, f)
}

func register[T any](s *Session, hs *handlers[T], f func(T)) (stop func() bool) {
	if f == nil {
		panic("session: a handler that is nil")
	}
	s.step((*machine).advance) // f is not called for what is over by now
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &handler[T]{f: f}
	hs.list = append(hs.list, h)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(hs.list, h)
		if i < 0 {
			return false
		}
		h.gone = true
		hs.list = slices.Delete(hs.list, i, i+1)
		return true
	}
}

// dispatch returns a function for every handler that is registered now, to be run each on a
// goroutine of its own. None calls its handler once the handler is unregistered or the Session is
// closed. mu is held.
func dispatch[T any](s *Session, hs *handlers[T], arg T) (calls []func()) {
	for _, h := range hs.list {
		calls = append(calls, func() {
			s.mu.Lock()
			over := h.gone || s.machine.closed
			s.mu.Unlock()
			if over {
				return
			}
			defer func() {
				if panicked := recover(); panicked != nil {
					s.logPanic(panicked)
				}
			}()
			h.f(arg)
		})
	}
	return calls
}
