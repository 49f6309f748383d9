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
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/tasks"
)

// Actions are the functions that carry out the effects of one input to the state machine. Of these functions,
// only two kinds may block: the hooks of the Trace, and the function that sets the alarm, which may block if
// Clock.After blocks.
type actions struct {
	acts    []func() // called before the requests are sent, for example to end contexts
	sends   []*sending
	later   []func() // called after the requests are sent: the alarm and the handlers
	hooks   []func()
	answers []answer // for the callers that wait
}

type answer struct {
	caller  caller
	outcome holder.Outcome
}

// spareActions and spareEffects recycle the structs of earlier inputs.
var (
	spareActions = sync.Pool{New: func() any { return new(actions) }}
	spareEffects = sync.Pool{New: func() any { return new(holder.Effects) }}
)

func (a *actions) do(f func()) { a.acts = append(a.acts, f) }

func (a *actions) hook(f func()) {
	if f != nil {
		a.hooks = append(a.hooks, f)
	}
}

// The method perform calls the functions in order, and sends each request on a goroutine of its own. Even if
// a hook panics or calls runtime.Goexit, the method delivers the outcomes, so that no caller waits forever.
// Then the panic continues.
func (a *actions) perform() {
	defer a.done()
	callAll(a.acts)
	for _, w := range a.sends {
		go w.send()
	}
	callAll(a.later)
	callAll(a.hooks)
}

// performHere is like perform, but sends a single request on the current goroutine, which must be free to
// wait for the answer. If there are hooks or outcomes to deliver, or the Clock can block, performHere just
// calls perform.
func (a *actions) performHere() {
	if len(a.sends) != 1 || len(a.hooks)+len(a.answers) > 0 || !a.sends[0].s.onSystemClock() {
		a.perform()
		return
	}
	w := a.sends[0]
	a.sends = none(a.sends)
	a.perform()
	w.send()
}

// done delivers the outcomes, and recycles the actions.
func (a *actions) done() {
	for _, to := range a.answers {
		to.caller.answer(to.outcome)
	}
	*a = actions{none(a.acts), none(a.sends), none(a.later), none(a.hooks), none(a.answers)}
	spareActions.Put(a)
}

func callAll(all []func()) {
	for _, f := range all {
		f()
	}
}

// none empties a list so that its memory can be used again.
func none[T any](all []T) []T {
	clear(all)
	return all[:0]
}

func (s *Session) onSystemClock() bool {
	_, ok := s.o.Clock.(clock.System)
	return ok
}

// take returns the actions for the effects of one input. The caller holds the mutex mu, and must unlock mu
// before it performs the actions.
func (s *Session) take(now time.Time) *actions {
	p := spareActions.Get().(*actions)
	out := s.machine.Take()
	defer func() { // out has no more users
		out.Clear()
		spareEffects.Put(out)
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
	if out.Ended != nil && s.renewing != nil {
		p.do(s.renewing.End)
		s.renewing = nil
	}
	for _, r := range out.Send {
		w := &sending{s: s, ctx: context.Background(), r: r}
		if r.Aim == holder.AimRenew {
			w.patience = &tasks.Patience{Until: s.machine.Patience()}
			s.renewing = w.patience
		} else if i := s.callAt(r.Call); i >= 0 {
			w.ctx = s.calls[i].ctx
		}
		s.tasks.Begin()
		p.sends = append(p.sends, w)
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
		p.answers = append(p.answers, answer{s.calls[i].caller, o})
		if s.calls = slices.Delete(s.calls, i, i+1); len(s.calls) == 0 {
			s.calls = nil // free the memory, because most Sessions have no calls most of the time
		}
	}
	return p
}

// A *sending is a request to the authority that [tasks.Call] carries out.
type sending struct {
	s        *Session
	ctx      context.Context // has the values of the caller's context; may have ended
	r        holder.Request
	patience *tasks.Patience // how long the request may wait to be sent; nil unless it is a renewal
	sent     time.Time       // when the request was sent; zero if it did not wait
}

// send sends the request, and passes the answer to the state machine. The caller has already registered send
// as a running task. The time limit of each request is the RequestTimeout.
func (w *sending) send() {
	defer tasks.EvenOnExit(w.s.tasks.End)
	tasks.Call(w.ctx, w.s.o.Clock, w.s.o.RequestTimeout, w.patience, w)
}

func (w *sending) Do(ctx context.Context) (lease.Result, error) {
	res, err := w.s.authority.Do(ctx, w.s.Name(), w.r.Request)
	w.sent = tasks.SentAt(ctx)
	return res, timedOut(ctx, "RequestTimeout", w.s.o.RequestTimeout, err)
}

func (w *sending) Answer(res lease.Result, err error, stuck bool) {
	if stuck {
		err = &timeoutError{"RequestTimeout", w.s.o.RequestTimeout, err}
	} else {
		w.waited()
	}
	w.s.step(func(m *holder.Machine, now time.Time) {
		if w.patience != nil && w.s.renewing == w.patience {
			w.s.renewing = nil
		}
		if w.r.Aim == holder.AimAcquire && err != nil {
			w.s.lockedBy = res.Record.Owner
		}
		m.Answered(w.r, now, res, err, stuck)
	})
}

// If the request had to wait before it was sent, w.waited corrects the time at which the request was sent.
func (w *sending) waited() {
	if !w.sent.IsZero() {
		w.r.Sent, w.r.Wait = w.sent, w.sent.Sub(w.r.Sent)
	}
}

func (w *sending) Returned(res lease.Result, err error) {
	w.waited()
	w.s.step(func(m *holder.Machine, now time.Time) { m.Returned(now, w.r, res, err) })
}
