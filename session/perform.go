package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/internal/urgent"
)

// take converts the effects of one input to two lists of functions. The second list (answers) has
// the functions that send an outcome to a waiting caller. The first list (acts) has all functions
// that do not send an outcome, in order of urgency. A function that calls a hook of the Trace can
// block. The function that sets the alarm blocks if the method After of the Clock blocks. No other
// function blocks. The caller of take holds mu, and must unlock mu before it calls the functions.
// The caller must call the functions in acts first.
func (s *Session) take(now time.Time) (acts, answers []func()) {
	out := s.machine.take()
	do := func(f func()) { acts = append(acts, f) }
	s.belief.Store(s.machine.term.belief)
	s.last = cmp.Or(s.machine.term.belief, s.last)
	if errors.Is(out.ended, lease.ErrTakenOver) {
		errors.As(out.ended, &s.takenOver)
	}
	var hooks []func()
	switch {
	case out.ended != nil:
		do(s.contexts.End(out.ended))
	case out.stop != nil:
		do(s.contexts.End(out.stop))
		hooks = append(hooks, s.reportStop(out.stop))
	}
	if out.ended != nil && s.watching != nil {
		do(s.watching)
		s.watching = nil
	}
	for _, r := range out.send {
		ctx := context.Background()
		if r.aim == aimRenew {
			ctx = renewing
		} else if c, waits := s.calls.Get(r.call); waits {
			ctx = c.ctx
		}
		do(s.tasks.Start(func() { s.sendRequest(ctx, r) }))
	}
	if _, ok := s.authority.(lease.Watcher); ok && s.o.Watch && out.began {
		ctx, cancel := context.WithCancel(context.Background())
		s.watching = cancel
		id := s.machine.term.belief.id
		do(s.tasks.Start(func() { s.watchHeld(ctx, id) }))
	}
	do(s.alarm.Set(s.o.Clock, now, s.machine.sleep(now)))
	for _, event := range out.report {
		handlers, hook := s.report(event)
		for _, call := range handlers {
			do(func() { go call() })
		}
		hooks = append(hooks, hook)
	}
	if out.ended != nil {
		hooks = append(hooks, s.reportEnd(out.ended))
	}
	acts = append(acts, slices.DeleteFunc(hooks, func(hook func()) bool { return hook == nil })...)
	for _, o := range out.answers {
		answer := s.calls.Take(o.call).answer
		answers = append(answers, func() { answer(o) })
	}
	return acts, answers
}

// perform calls the functions in the list acts, and then the functions in the list answers. The
// method take has returned both lists. If a hook panics or calls runtime.Goexit, perform still
// calls the functions in the list answers, so that no caller waits forever. After those calls, the
// panic continues. A panic of a hook ends the process, unless the hook runs on the goroutine of a
// caller that recovers.
func perform(acts, answers []func()) {
	defer func() {
		for _, answer := range answers {
			answer()
		}
	}()
	for _, act := range acts {
		act()
	}
}

var renewing = urgent.Mark(context.Background()) // the context of every renewal

// sendRequest sends a request and passes the answer to the machine. The parameter ctx is the context
// of the call that the request belongs to. If ctx has ended, sendRequest does not send an Acquire,
// but still sends every other request. The time limit of each request is the RequestTimeout.
func (s *Session) sendRequest(ctx context.Context, r request) {
	if err := ctx.Err(); err != nil && r.aim == aimAcquire {
		s.step(func(m *machine, now time.Time) {
			m.cancel(now, r.call, err)
			m.answered(r, now, lease.Result{}, lease.ErrReleased, false) // certainly not granted
		})
		return
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	tasks.Guard(ctx, s.o.Clock, s.o.RequestTimeout, &sending{s, r})
}

// A sending is a request on its way to the authority. It implements [tasks.Request].
type sending struct {
	s *Session
	r request
}

func (w *sending) Do(ctx context.Context) (lease.Result, error) {
	res, err := w.s.authority.Do(ctx, w.s.Name(), w.r.Request)
	return res, timedOut(ctx, "RequestTimeout", w.s.o.RequestTimeout, err)
}

func (w *sending) Answer(res lease.Result, err error, stuck bool) {
	if stuck {
		err = &timeoutError{"RequestTimeout", w.s.o.RequestTimeout, err}
	}
	w.s.step(func(m *machine, now time.Time) {
		if w.r.aim == aimAcquire && err != nil {
			w.s.lockedBy = res.Record.Owner
		}
		m.answered(w.r, now, res, err, stuck)
	})
}

func (w *sending) Returned(res lease.Result, err error) {
	w.s.step(func(m *machine, now time.Time) { m.noteReturn(now, w.r, res, err) })
}
