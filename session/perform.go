package session

import (
	"context"
	"time"
)

// A performance is the effects of one step, with what they concern as it was during the step.
type performance struct {
	effects
	contexts []*heldContext
	cause    error // with which they end
	unwatch  context.CancelFunc
	watch    func()
	alarm    func()
	waiters  []*waiter // in the order of the answers
	handlers []func()
}

// take takes the effects of the input that was just given. mu is held.
func (s *Session) take(now time.Time) performance {
	p := performance{effects: s.machine.take()}
	if b := s.machine.term.belief; b != s.belief.Load() {
		s.belief.Store(b)
	}
	p.cause = p.stop
	if p.ended != nil {
		p.cause = p.ended
		p.unwatch, s.watching = s.watching, nil
	}
	if p.cause != nil {
		for c := range s.contexts {
			c.cause = p.cause // even if the work returns before the context was ended
			p.contexts = append(p.contexts, c)
		}
		s.contexts = nil
	}
	if p.began {
		p.watch = s.watchHeld()
	}
	for range p.send {
		s.tasks.begin()
	}
	for _, e := range p.report {
		p.handlers = append(p.handlers, s.notify(e)...)
	}
	for _, o := range p.answers {
		p.waiters = append(p.waiters, s.calls[o.call])
		delete(s.calls, o.call)
	}
	p.alarm = s.alarm.set(now, s.machine.sleep(now))
	return p
}

// perform does what was taken, the most urgent first. No lock is held, and nothing waits for
// anything but the hooks of the Trace.
func (p *performance) perform(s *Session) {
	for _, c := range p.contexts {
		c.cancel(p.cause)
	}
	if p.unwatch != nil {
		p.unwatch()
	}
	for _, r := range p.send {
		go s.exchange(r)
	}
	for _, f := range []func(){p.watch, p.alarm} {
		if f != nil {
			f()
		}
	}
	for _, f := range p.handlers {
		go f()
	}
	for _, e := range p.report {
		s.record(e)
	}
	defer p.answer()
	for _, e := range p.report {
		s.o.Trace.call(e)
	}
}

// answer ends the calls that were answered, even if a hook has ended its goroutine. If a hook
// has panicked the process is about to end, and no call returns before.
func (p *performance) answer() {
	if panicked := recover(); panicked != nil {
		panic(panicked)
	}
	for i, w := range p.waiters {
		w.outcome = p.answers[i]
		close(w.done)
		if w.ended != nil {
			w.ended()
		}
	}
}
