package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/engines"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/tasks"
)

// A plan has the functions that carry out the effects of one input. A hook of the Trace can block, and so
// can the function that sets the alarm, if the method After of the Clock blocks. No other function
// blocks.
type plan struct {
	acts    []func() // before the requests, such as the end of contexts
	sends   []*sending
	later   []func() // the alarm, and handlers
	hooks   []func()
	answers []answer // for callers that wait
}

// An answer is an outcome and where it goes.
type answer struct {
	to receiver
	o  holder.Outcome
}

// plans and spare have structs that nothing uses any more.
var (
	plans = sync.Pool{New: func() any { return new(plan) }}
	spare = sync.Pool{New: func() any { return new(holder.Effects) }}
)

func (p *plan) do(f func()) { p.acts = append(p.acts, f) }

// hook adds a hook, which may be nil.
func (p *plan) hook(f func()) {
	if f != nil {
		p.hooks = append(p.hooks, f)
	}
}

// perform calls the functions in order, and sends each request on a goroutine of its own. If a hook
// panics or calls runtime.Goexit, perform still sends the outcomes, so that no caller waits forever. After
// that, the panic continues. A panic of a hook ends the process, unless the hook runs on the goroutine of
// a caller that recovers.
func (p *plan) perform() {
	defer p.done()
	callAll(p.acts)
	for _, w := range p.sends {
		go w.send()
	}
	callAll(p.later)
	callAll(p.hooks)
}

// performHere is perform for a goroutine that may wait for the answer to a request. If the plan is just to
// send one, and the Clock cannot block, that is done on this goroutine.
func (p *plan) performHere() {
	if len(p.sends) != 1 || len(p.hooks)+len(p.answers) > 0 || !p.sends[0].s.onSystemClock() {
		p.perform()
		return
	}
	w := p.sends[0]
	p.sends = none(p.sends)
	p.perform()
	w.send()
}

// done sends the outcomes, and keeps the plan for another input.
func (p *plan) done() {
	for _, a := range p.answers {
		a.to.answer(a.o)
	}
	*p = plan{none(p.acts), none(p.sends), none(p.later), none(p.hooks), none(p.answers)}
	plans.Put(p)
}

func callAll(all []func()) {
	for _, f := range all {
		f()
	}
}

// none empties a list.
func none[T any](all []T) []T {
	clear(all)
	return all[:0]
}

func (s *Session) onSystemClock() bool {
	_, ok := s.o.Clock.(clock.System)
	return ok
}

// take makes a plan of the effects of one input. The caller holds mu, and must unlock mu before it
// performs the plan.
func (s *Session) take(now time.Time) *plan {
	p := plans.Get().(*plan)
	out := s.machine.Take()
	defer func() { // it has no more users
		out.Clear()
		spare.Put(out)
	}()
	s.belief.Store(s.machine.Belief())
	s.last = cmp.Or(s.machine.Belief(), s.last)
	if errors.Is(out.Ended, lease.ErrTakenOver) {
		errors.As(out.Ended, &s.takenOver)
	}
	switch {
	case out.Ended != nil:
		p.do(s.contexts.End(out.Ended))
	case out.Stop != nil:
		p.do(s.contexts.End(out.Stop))
		p.hook(s.reportStop(out.Stop))
	}
	if out.Ended != nil && s.watching != nil {
		p.do(s.watching)
		s.watching = nil
	}
	for _, r := range out.Send {
		ctx := context.Background()
		if r.Aim == holder.AimRenew {
			ctx = renewing
		} else if i := s.callAt(r.Call); i >= 0 {
			ctx = s.calls[i].ctx
		}
		s.tasks.Begin()
		p.sends = append(p.sends, &sending{s, ctx, r})
	}
	if _, ok := s.authority.(lease.Watcher); ok && s.o.Watch && out.Began {
		ctx, cancel := context.WithCancel(context.Background())
		s.watching = cancel
		id := s.machine.Belief().ID
		p.do(s.tasks.Start(func() { s.watchHeld(ctx, id) }))
	}
	p.later = append(p.later, s.alarm.Set(s.o.Clock, now, s.machine.Sleep(now)))
	for _, event := range out.Report {
		handlers, hook := s.report(event)
		for _, call := range handlers {
			p.later = append(p.later, func() { go call() })
		}
		p.hook(hook)
	}
	if out.Ended != nil {
		p.hook(s.reportEnd(out.Ended))
	}
	for _, o := range out.Answers {
		i := s.callAt(o.Call)
		p.answers = append(p.answers, answer{s.calls[i].to, o})
		if s.calls = slices.Delete(s.calls, i, i+1); len(s.calls) == 0 {
			s.calls = nil // most Sessions have none most of the time
		}
	}
	return p
}

var renewing = engines.MarkUrgent(context.Background()) // the context of every renewal

// A sending is a request on its way to the authority. It implements [tasks.Request].
type sending struct {
	s   *Session
	ctx context.Context // has the values of that of the call; may have ended
	r   holder.Request
}

// send sends the request, as a task that has begun, and passes the answer to the machine. The time limit of
// each request is the RequestTimeout.
func (w *sending) send() {
	growStack(0)
	defer tasks.EvenOnExit(w.s.tasks.End)
	tasks.Call(w.ctx, w.s.o.Clock, w.s.o.RequestTimeout, w)
}

func (w *sending) Do(ctx context.Context) (lease.Result, error) {
	res, err := w.s.authority.Do(ctx, w.s.Name(), w.r.Request)
	return res, timedOut(ctx, "RequestTimeout", w.s.o.RequestTimeout, err)
}

func (w *sending) Answer(res lease.Result, err error, stuck bool) {
	if stuck {
		err = &timeoutError{"RequestTimeout", w.s.o.RequestTimeout, err}
	}
	w.s.step(func(m *holder.Machine, now time.Time) {
		if w.r.Aim == holder.AimAcquire && err != nil {
			w.s.lockedBy = res.Record.Owner
		}
		m.Answered(w.r, now, res, err, stuck)
	})
}

func (w *sending) Returned(res lease.Result, err error) {
	w.s.step(func(m *holder.Machine, now time.Time) { m.Returned(now, w.r, res, err) })
}

// growStack makes the stack of a new goroutine large enough for a request. A stack that grows later costs
// more, because the runtime then adjusts many frames, twice.
//
//go:noinline
func growStack(i int) byte {
	var frame [5 << 10]byte
	return frame[i]
}
