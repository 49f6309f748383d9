package session

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/holder"
)

// A Trace is a set of hooks for the events of a [Session], for metrics and tests. Any hook may be nil. A hook
// is called after its event, without a lock. Several hooks may run at the same time.
//
// A hook must not block, because it delays the method call whose event it reports. Unlike a handler of OnLost
// or OnBreaking, a hook must not make the Session send a request. The Session does not recover from a panic
// in a hook. Most hooks run on a goroutine of the Session, where a panic ends the process.
type Trace struct {
	// Acquire is called after each attempt to acquire the lease. A take-over counts as one attempt, although
	// it takes several requests. The hook is not called if Acquire returns before it has sent a request, or
	// before the answer has arrived.
	Acquire func(AcquireInfo)

	// Renew is called after every renewal.
	Renew func(RenewInfo)

	// The hook Breaking is called when the Session learns that its lease was broken with a grace period. If
	// the grace period is shortened, the hook is called again.
	Breaking func(BreakInfo)

	// Stopping is called when the stop window of a term begins. At that time the contexts of WhileHeld have
	// already ended. Their cause is the LostError, with the Reason [lease.ErrStopWindow]. The lease is lost
	// one StopWindow later, unless a renewal is granted first. If a renewal is granted in time, the stop
	// window ends and the term continues. A term can therefore have several stop windows. Stopping is not
	// called for a loss without a stop window, for example after the process was suspended.
	Stopping func(*lease.LostError)

	// Released is called after every release and every hand-over, with its outcome. This includes releases of
	// a lease that was acquired or renewed too late.
	Released func(ReleaseInfo)

	// Ended is called once for every term, when CheckAlive has turned false. The Reason in the EndInfo tells
	// a release from a loss. To count losses, also count the errors of [Run] that match fencing.ErrStale,
	// because a guard can reject a write before the Session has noticed that it lost the lease.
	Ended func(EndInfo)

	// Contended is called when [Run], [TryRun] or [AcquireWait] has acquired the lease, or has stopped trying
	// to acquire it.
	Contended func(ContendInfo)
}

// AcquireInfo is the argument of the hook [Trace].Acquire.
type AcquireInfo struct {
	Name  string        // the name of the lease
	Token lease.Token   // the token of the held term; empty if the Session does not hold the lease
	Err   error         // the error that Acquire returns, without the operation and the name; nil if another holder has the lease
	Took  time.Duration // the time from sending the last request to its answer
}

// RenewInfo is the argument of the hook [Trace].Renew.
type RenewInfo struct {
	Name  string        // the name of the lease
	Token lease.Token   // the token of the term that was renewed; empty if the term had already ended
	Err   error         // the error of the renewal; nil if it was granted
	Took  time.Duration // the time until the answer, including the time that the renewal waited in the process because the server was busy

	Duration time.Duration // the Duration of the Session's Options
	Left     time.Duration // how long CheckAlive would still have been true without this answer; not positive if the answer came too late
}

// ReleaseInfo is the argument of the hook [Trace].Released.
type ReleaseInfo struct {
	Name  string      // the name of the lease
	Token lease.Token // the token of the term with this ID; empty if no term had this ID, or if a newer term has begun
	ID    lease.ID    // the ID that was released or handed over
	To    lease.ID    // the ID of the receiver of a hand-over; zero for a release
	Err   error       // the error; nil unless the outcome is unknown, no request was sent, or a hand-over was refused
}

// BreakInfo is the argument of the hook [Trace].Breaking.
type BreakInfo struct {
	Name  string      // the name of the lease
	Token lease.Token // the token of the term that is held
	Until time.Time   // U, the time until which the lease is certainly held
}

// EndInfo is the argument of the hook [Trace].Ended.
type EndInfo struct {
	Name  string      // the name of the lease
	Token lease.Token // the token of the term that has ended

	// If Release, HandOver or Close ended the term, Reason is [lease.ErrReleased]. The exception is a term in
	// which a stop window had begun before that call: Reason is then [lease.ErrStopWindow]. After a loss,
	// Reason is the Reason of the LostError.
	Reason lease.Code
	Err    error // the *lease.LostError of the loss or of the stop window; nil if Reason is ErrReleased
}

// ContendInfo is the argument of the hook [Trace].Contended.
type ContendInfo struct {
	Name     string        // the name of the lease
	Token    lease.Token   // the token that was granted; empty if the lease was not acquired
	Err      error         // why the lease was not acquired; nil if it was granted, or if another holder has the lease
	Took     time.Duration // the time from the first attempt to the result
	Attempts int           // how often Acquire was called
}

// OnLost registers f to be called when the lease is lost, as [lease.Lease] describes. If the function that
// was passed to [Run] returns within the stop window, Run releases the lease in time, and f is not called. If
// f panics, the Session logs the panic and continues. If f is nil, OnLost panics.
func (s *Session) OnLost(f func(error)) (stop func() bool) {
	needHandler(f == nil, "OnLost")
	s.step(nil) // detects a loss before the registration, for which f must not be called
	return s.onLost.Add(f)
}

// OnBreaking registers f to be called when the Session learns that its lease is breaking. The argument of f
// is the time, on the Session's clock, at which the lease will be lost. Before that time, the program should
// finish its work and call Release. The contexts of [Session.WhileHeld] end earlier, when one StopWindow is
// left until that time. If somebody later shortens the break by more than Margin, f is called again, with the
// new time. Each call of f runs in a goroutine of its own. The returned function stop unregisters f, and
// works like the returned function of [Session.OnLost]. If f is nil, OnBreaking panics.
//
// The Session learns of a break from its next renewal. With the default options, the Session learns of the
// break within 15 s unless the renewal fails: within one RenewInterval of 10 s and one RequestTimeout of 5 s.
// If RenewInterval is shorter than RequestTimeout, the Session learns of the break within two
// RequestTimeouts. With [Options.Watch], the Session learns of a break after one read of the record and one
// renewal. If the grace period of a break ends before the Session learns of the break, only the fencing token
// protects the data from late writes.
func (s *Session) OnBreaking(f func(until time.Time)) (stop func() bool) {
	needHandler(f == nil, "OnBreaking")
	s.step(nil)
	return s.onBreak.Add(f)
}

func needHandler(isNil bool, method string) {
	if isNil {
		panic("session: " + method + ": the handler must not be nil")
	}
}

// report logs an event. It returns functions that call the handlers and the hook for the event. The hook is
// nil if the Trace has none. The caller holds mu, so that the log has the events in order.
func (s *Session) report(event any) (calls []func(), hook func()) {
	t := s.o.Trace
	if t == nil {
		t = &Trace{}
	}
	switch e := event.(type) {
	case holder.Acquired:
		if e.Token != "" && s.log.Enabled(slog.LevelDebug) {
			s.record(slog.LevelDebug, "acquired", "token", e.Token)
		}
		if !e.Abandoned {
			hook = bind(t.Acquire, AcquireInfo{s.name, e.Token, e.Err, e.Took})
		}
	case holder.Renewed:
		hook = bind(t.Renew, RenewInfo{Name: s.name, Token: e.Token, Err: e.Err, Took: e.Took, Duration: s.o.Duration, Left: e.Left})
	case holder.Released:
		info := ReleaseInfo{Name: s.name, ID: e.ID, To: e.To, Err: e.Err}
		if s.last != nil && s.last.ID == e.ID {
			info.Token = s.last.Token
		}
		if e.Err == nil && s.log.Enabled(slog.LevelDebug) {
			args := []any{"id", e.ID}
			if info.Token != "" {
				args = append(args, "token", info.Token)
			}
			text := "released"
			if !e.To.IsZero() {
				text, args = "handed over", append(args, "to", e.To)
			}
			s.record(slog.LevelDebug, text, args...)
		}
		hook = bind(t.Released, info)
	case holder.Breaking:
		s.record(slog.LevelWarn, "breaking", "token", e.Token, "until", e.Until)
		calls = s.onBreak.Calls(e.Until, s.logPanic)
		hook = bind(t.Breaking, BreakInfo{s.name, e.Token, e.Until})
	case holder.Failure:
		s.record(slog.LevelWarn, e.What+" failed", "failures", e.Count, "err", e.Err)
	case holder.Recovery:
		s.record(slog.LevelInfo, "the authority answers again", "failures", e.Count)
	case *lease.LostError:
		s.record(slog.LevelError, "lost", "token", e.Token, "reason", e.Reason.String(), "err", e.Err)
		calls = s.onLost.Calls(e, s.logPanic)
	default:
		panic(fmt.Sprintf("session: an event of type %T has no report", event))
	}
	return calls, hook
}

// reportEnd returns a function that calls the hook [Trace].Ended, or nil if the Trace has no such hook.
func (s *Session) reportEnd(cause error) (hook func()) {
	info := EndInfo{Name: s.Name(), Token: s.last.Token, Reason: lease.ErrReleased}
	if lost := (*lease.LostError)(nil); errors.As(cause, &lost) {
		info.Reason, info.Err = lost.Reason, lost
	} else if s.stopping != nil {
		info.Reason, info.Err = lease.ErrStopWindow, s.stopping
	}
	s.stopping = nil
	if s.o.Trace == nil {
		return nil
	}
	return bind(s.o.Trace.Ended, info)
}

// reportStop logs that a stop window begins. It returns a function that calls the hook [Trace].Stopping, or
// nil if the Trace has no such hook.
func (s *Session) reportStop(e *lease.LostError) (hook func()) {
	s.stopping = e
	s.record(slog.LevelWarn, "stopping", "token", e.Token, "err", e)
	if s.o.Trace == nil {
		return nil
	}
	return bind(s.o.Trace.Stopping, e)
}

func bind[T any](hook func(T), event T) func() {
	if hook == nil {
		return nil
	}
	return func() { hook(event) }
}

// record queues a record for the Logger, and does not block.
func (s *Session) record(level slog.Level, text string, args ...any) {
	s.log.Log(level, "lease: "+text, slices.Concat([]any{"name", s.Name()}, args, []any{"owner", s.Owner()})...)
}

func (s *Session) logPanic(panicked any) {
	s.record(slog.LevelError, "a handler panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
