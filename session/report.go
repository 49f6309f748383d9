package session

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/fencedlease/lease"
)

// A Trace is a set of hooks for the events of a [Session], for metrics and tests. Any of
// them may be nil. They are called on the goroutine that decided, after the decision and
// without any lock held; those of one Session may be called at the same time. A hook that
// takes long delays the call it reports, so it must not wait, and must not make the Session
// send a request: that is what the handlers of OnLost and OnBreaking are for. One that panics
// is not recovered from, and most run on goroutines of the Session: that ends the process.
type Trace struct {
	// Acquire is called after every try to acquire that made a request: how it ended, and how
	// long its last request took. A take-over is one try of several requests.
	Acquire func(AcquireInfo)

	// Renew is called after every renewal.
	Renew func(RenewInfo)

	// Breaking is called when the Session learns that its lease is breaking, and again when
	// the break was shortened, with the time until which it is certain.
	Breaking func(tok lease.Token, until time.Time)

	// Lost is called once for every incarnation that ends by loss.
	Lost func(*lease.LostError)

	// Released is called after every request to release: by Release, Close or HandOver, or
	// to undo an Acquire or a renewal that came too late.
	Released func(ReleaseInfo)
}

// AcquireInfo is what [Trace].Acquire is told.
type AcquireInfo struct {
	Token     lease.Token   // of the incarnation that is held now; empty if none is
	Err       error         // not nil if the outcome is unknown, or an argument was bad
	Took      time.Duration // from the sending of the last request to its answer
	Abandoned bool          // the caller had gone when the answer came
}

// RenewInfo is what [Trace].Renew is told.
type RenewInfo struct {
	Token  lease.Token   // of the incarnation that was renewed; empty if it had ended meanwhile
	Err    error         // nil if the renewal was granted
	Took   time.Duration // from its sending to its answer
	Margin time.Duration // how much was left of the belief when the answer came; not positive: too late
}

// ReleaseInfo is what [Trace].Released is told.
type ReleaseInfo struct {
	ID  lease.ID // that was released or handed over
	To  lease.ID // the receiver's, for a hand-over
	Err error    // if the outcome is unknown, or a hand-over was refused
}

// The events that a machine reports are AcquireInfo, RenewInfo and ReleaseInfo, which the hooks of
// a Trace get, *lease.LostError, and these:

// A breakInfo says that the lease is breaking, and that the belief ends at until.
type breakInfo struct {
	token lease.Token
	until time.Time
}

// A failure is a failed request, the count-th in a row.
type failure struct {
	what  string
	err   error
	count int
}

// OnLost registers f as [lease.Lease] says. A panic in f is logged; it stops nothing else.
func (s *Session) OnLost(f func(error)) (stop func() bool) {
	s.step((*machine).advance) // f is not called for what is over by now
	return s.onLost.Add(f)
}

// OnBreaking registers f to be called when the Session learns that its lease is breaking: it
// will be lost at until, on the Session's clock. It is the time to finish and to Release. The
// contexts of [Session.WhileHeld] end a StopWindow before that. If the end of the break moves
// earlier by more than Margin f is called again. Handlers run as those of OnLost do.
//
// The Session learns of a break when it next renews, at most RenewInterval and RequestTimeout
// later, or with Options.Watch as soon as it has asked. A break with less grace than that ends the
// lease before its holder knows: then only the fencing token protects what the holder writes.
func (s *Session) OnBreaking(f func(until time.Time)) (stop func() bool) {
	s.step((*machine).advance)
	return s.onBreak.Add(f)
}

// report logs an event, and returns the calls of the handlers and of the hook for it. mu is held, so
// that records are in the order of the decisions.
func (s *Session) report(event any) (calls []func(), hook func()) {
	t := cmp.Or(s.o.Trace, new(Trace))
	hook = func() {}
	switch e := event.(type) {
	case AcquireInfo:
		if e.Token != "" {
			s.record(slog.LevelDebug, "acquired", "token", e.Token)
		}
		hook = func() { callHook(t.Acquire, e) }
	case RenewInfo:
		hook = func() { callHook(t.Renew, e) }
	case ReleaseInfo:
		if e.Err == nil {
			s.record(slog.LevelDebug, "released", "id", e.ID)
		}
		hook = func() { callHook(t.Released, e) }
	case breakInfo:
		s.record(slog.LevelWarn, "breaking", "token", e.token, "until", e.until)
		calls = s.onBreak.Calls(e.until, s.logPanic)
		hook = func() {
			if t.Breaking != nil {
				t.Breaking(e.token, e.until)
			}
		}
	case failure:
		s.record(slog.LevelWarn, e.what+" failed", "failures", e.count, "err", e.err)
	case *lease.LostError:
		s.record(slog.LevelError, "lost", "token", e.Token, "reason", e.Reason.String(), "err", e.Err)
		calls = s.onLost.Calls(e, s.logPanic)
		hook = func() { callHook(t.Lost, e) }
	default:
		panic(fmt.Sprintf("session: an event of type %T has no report", event))
	}
	return calls, hook
}

// callHook calls a hook, if there is one.
func callHook[T any](hook func(T), event T) {
	if hook != nil {
		hook(event)
	}
}

// record adds a record to the queue of the Logger, which waits for nothing.
func (s *Session) record(level slog.Level, text string, args ...any) {
	s.log.Log(level, "lease: "+text, append([]any{"name", s.Name()}, args...)...)
}

// logPanic logs the panic of a handler.
func (s *Session) logPanic(panicked any) {
	s.record(slog.LevelError, "a handler panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
