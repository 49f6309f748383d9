package leasetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/notify"
)

// A Fake is a [lease.Lease] for unit tests of code that uses a lease. It needs no store: the test decides
// what Acquire and Release return ([Fake.Next], [Fake.NextRelease]), and when the lease is lost or broken
// ([Fake.Lose], [Fake.Break]). [Fake.Calls] returns the methods that the code under test has called. A Fake
// has no methods HandOver and Name, and session.Run accepts no MinHold and no ProgressTimeout with it. To test
// these or session.RunAll, run real Sessions in a synctest bubble, all with the same memory.Store.
//
// The zero Fake is ready to use. Its lease is free, every Acquire is granted, and the lease never expires by
// itself. A Fake implements [lease.TokenAcquirer] and [lease.Waiter], and has the methods WhileHeld and
// OnBreaking of a session.Session. [TestLease] checks that a Fake conforms to lease.Lease.
//
// A Fake need not be closed. It starts a goroutine for each handler that it calls, and a timer for each break
// with a positive period. Make a Fake in the synctest bubble in which it is used. Its methods are safe for
// concurrent use, and handlers may call them. A Fake must not be copied.
type Fake struct {
	// Name is the name of the lease in a [*lease.LostError]. It may be empty.
	Name string

	// StopWindow is the time between the end of the contexts of WhileHeld and the end of a broken lease, as
	// in a session.Session. If StopWindow is negative, these contexts end at the same time as the lease.
	// Default: 5 s, as in a Session whose leases last for 30 s or longer.
	StopWindow time.Duration

	// Logger receives the panics of handlers. It also receives a warning when Wait has waited for 10 s,
	// because a test whose rival never releases would otherwise block silently. Default: slog.Default().
	Logger *slog.Logger

	onLost     notify.Handlers[error]
	onBreaking notify.Handlers[time.Time]
	contexts   notify.ContextSet // the contexts that WhileHeld returned

	made  sync.Once
	lease *fakeLease // set by contest

	// The mutex of the fakeLease guards these fields.
	answers   []fakeAnswer     // the results of the next Acquires
	releases  []fakeAnswer     // the results of the next Releases
	unsettled bool             // an Acquire is running, or the last Acquire or Release has failed
	lost      *lease.LostError // the last loss, if no Acquire and no Release has followed it
	calls     []string
	released  chan struct{} // closed by Release; nil if no call waits for a Release
}

// A fakeLease is the lease for which a Fake and its rivals contend.
type fakeLease struct {
	mu      sync.Mutex
	epoch   uint64
	holder  *Fake         // nil if the lease is free
	stopped bool          // the stop window of the current term has begun
	end     time.Time     // the end of a break; zero if the lease is not breaking
	timers  []*time.Timer // fire at the beginning of the stop window and at the end of the break
	freed   chan struct{} // closed when the lease becomes free; nil if no call waits until the lease is free
	after   []func()      // functions that are called after mu is unlocked
}

// A fakeAnswer is the result of one Acquire or Release.
type fakeAnswer struct {
	delay time.Duration
	ok    bool
	err   error
}

// Next sets the result of the next Acquire. If ok is true, the Acquire is granted. If ok is false and err is
// nil, the Acquire returns false, as if another holder had the lease. Otherwise it returns err in a
// [*lease.OpError], as a session.Session does. The results of several calls of Next are used in order. After
// the last result, every Acquire is granted. While a rival holds the lease, an Acquire that would be granted
// returns (false, nil) instead.
//
// If the Fake already holds the lease, an Acquire returns true, and the result that Next has set is used by a
// later Acquire. If the context of an Acquire is already done, the Acquire returns the error of the context,
// and the result is used by a later Acquire as well. Next panics if err is not nil and ok is true.
func (f *Fake) Next(ok bool, err error) { f.NextAfter(0, ok, err) }

// NextAfter is like [Fake.Next], but the Acquire waits for d before it returns. If the context of the Acquire
// ends during the wait, the Acquire returns the error of the context. If Release is called during the wait,
// the Acquire returns [lease.ErrReleased].
func (f *Fake) NextAfter(d time.Duration, ok bool, err error) {
	must(!ok || err == nil, "Fake.Next: err is %q, and must be nil if ok is true", err)
	must(d >= 0, "Fake.NextAfter: d is %v, and must not be negative", d)
	f.update("", func(*fakeLease) { f.answers = append(f.answers, fakeAnswer{d, ok, err}) })
}

// NextRelease sets the result of the next Release: nil, or err in a [*lease.OpError]. A Release that returns
// an error also releases the lease, as if the authority had executed the release, but its answer had been
// lost. The results of several calls of NextRelease are used in order. After the last result, a Release
// returns nil.
//
// If there is nothing to release, Release returns nil and uses no result. There is something to release in
// three cases: the lease is held, an Acquire is running, or the last Acquire or Release has returned an
// error. A Release whose context is already done uses no result. It releases the lease and returns the error
// of the context.
func (f *Fake) NextRelease(err error) { f.NextReleaseAfter(0, err) }

// NextReleaseAfter is like [Fake.NextRelease], but the Release first releases the lease, and then waits for d
// before it returns. If the context of the Release ends during the wait, the Release returns the error of the
// context.
func (f *Fake) NextReleaseAfter(d time.Duration, err error) {
	must(d >= 0, "Fake.NextReleaseAfter: d is %v, and must not be negative", d)
	f.update("", func(*fakeLease) { f.releases = append(f.releases, fakeAnswer{delay: d, err: err}) })
}

// Lose ends the lease at once with the given reason, and reports whether the lease was held. The handlers of
// OnLost get a [*lease.LostError], which is also the cause of the contexts of WhileHeld. Lose panics if a
// lease is never lost with that reason. For [lease.ErrStopWindow], call [Fake.EndWork].
func (f *Fake) Lose(reason lease.Code) (held bool) {
	possible := []lease.Code{lease.ErrExpired, lease.ErrBroken, lease.ErrTakenOver, lease.ErrNoProgress}
	must(reason.Refusal() || slices.Contains(possible, reason), "Fake.Lose: reason is %q, and must be ErrExpired, ErrBroken, ErrTakenOver, ErrNoProgress or a refusal; for ErrStopWindow call EndWork", reason.String())
	f.update("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.lose(reason)
		}
	})
	return held
}

// EndWork begins the stop window, as a session.Session does shortly before its lease expires, and reports
// whether the lease was held. All contexts of WhileHeld end with a [*lease.LostError] whose Reason is
// [lease.ErrStopWindow]. During a break, the Err of this error is [lease.ErrBroken]. Until the lease is
// granted again, WhileHeld returns contexts that have already ended.
func (f *Fake) EndWork() (held bool) {
	f.update("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.stopWork()
		}
	})
	return held
}

// Break breaks the lease as an operator would, and reports whether the lease was held. When the period has
// passed, the lease is lost with the reason [lease.ErrBroken]. If the period is positive, Break calls the
// handlers of OnBreaking with the time at which the period ends. The contexts of WhileHeld end at the
// beginning of the stop window. The cause of these contexts is the [*lease.LostError] that the comment of
// [Fake.EndWork] describes. For example, with a StopWindow of 5 s, these contexts end 5 s before the end of
// the period. A second Break can only shorten the period.
func (f *Fake) Break(period time.Duration) (held bool) {
	must(period >= 0, "Fake.Break: period is %v, and must not be negative", period)
	f.update("", func(l *fakeLease) {
		held = l.holder == f
		end := time.Now().Add(period)
		switch {
		case !held || !l.end.IsZero() && !end.Before(l.end):
		case period == 0:
			l.lose(lease.ErrBroken)
		default:
			l.stopTimers()
			l.end = end
			for _, after := range []time.Duration{period - f.stopWindow(), period} {
				l.timers = append(l.timers, time.AfterFunc(after, func() { f.update("", func(*fakeLease) {}) }))
			}
			l.callLater(f.onBreaking.Calls(end, f.logPanic))
			l.passTime()
		}
	})
	return held
}

// Rival returns a Fake for another holder of the same lease. Only one of the holders can have it at a time.
func (f *Fake) Rival() *Fake {
	return &Fake{Name: f.Name, StopWindow: f.StopWindow, Logger: f.Logger, lease: f.contest()}
}

// Calls returns the names of the methods that the code under test has called so far, in the order of the
// calls. The list covers the methods of [lease.Lease] and [lease.Waiter], and also OnBreaking and WhileHeld.
// AcquireWithToken is listed as "Acquire", and consecutive calls of CheckAlive are listed once. A Wait whose
// context is already done is not listed.
func (f *Fake) Calls() (calls []string) {
	f.update("", func(*fakeLease) { calls = slices.Clone(f.calls) })
	return calls
}

// Acquire implements [lease.Lease].
func (f *Fake) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := f.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken implements [lease.TokenAcquirer].
func (f *Fake) AcquireWithToken(ctx context.Context) (tok lease.Token, ok bool, err error) {
	var answer fakeAnswer
	var released <-chan struct{}
	over := ctx.Err()
	f.update("Acquire", func(l *fakeLease) {
		switch {
		case l.holder == f:
			tok, ok = lease.TokenOf(l.epoch), true
			return
		case over != nil:
			return
		case len(f.answers) > 0:
			answer, f.answers = f.answers[0], f.answers[1:]
		default:
			answer.ok = true
		}
		f.unsettled = true
		released = waitFor(&f.released)
	})
	switch {
	case ok:
		return tok, true, nil
	case over != nil:
		return "", false, f.opError("acquire", over)
	}
	if answer.delay > 0 {
		timer := time.NewTimer(answer.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return "", false, f.opError("acquire", ctx.Err())
		case <-released:
		}
	}
	f.update("", func(l *fakeLease) {
		select {
		case <-released:
			err = lease.ErrReleased
			return
		default:
		}
		switch {
		case l.holder == f: // a concurrent Acquire was granted in the meantime
			tok, ok = lease.TokenOf(l.epoch), true
		case answer.err != nil:
			err = answer.err
		case answer.ok && l.holder == nil:
			l.holder = f
			l.epoch++
			f.lost = nil
			tok, ok = lease.TokenOf(l.epoch), true
		}
		f.unsettled = err != nil
	})
	return tok, ok, f.opError("acquire", err)
}

// Release implements [lease.Lease]. A test sets the error that Release returns with [Fake.NextRelease]. The
// first Release after a loss returns that loss, unless an Acquire was granted in between.
func (f *Fake) Release(ctx context.Context) (err error) {
	over := ctx.Err() // read before the lease is released, because the release may end ctx
	var lost *lease.LostError
	var answer fakeAnswer
	f.update("Release", func(l *fakeLease) {
		signal(&f.released)
		switch needed := l.holder == f || f.unsettled; {
		case !needed:
		case over != nil:
			err = over
		case len(f.releases) > 0:
			answer, f.releases = f.releases[0], f.releases[1:]
			err = answer.err
		}
		f.unsettled = err != nil || answer.delay > 0
		if l.holder == f {
			l.setFree(lease.ErrReleased)
		}
		lost, f.lost = f.lost, nil
	})
	if answer.delay > 0 {
		if sleep(ctx, answer.delay) != nil {
			err = ctx.Err()
		}
		f.update("", func(*fakeLease) { f.unsettled = err != nil })
	}
	switch err = f.opError("release", err); {
	case lost == nil:
		return err
	case err == nil:
		return lost
	}
	return fmt.Errorf("%w; %w", err, lost)
}

// CheckAlive implements [lease.Lease].
func (f *Fake) CheckAlive() (held bool) {
	f.update("CheckAlive", func(l *fakeLease) { held = l.holder == f })
	return held
}

// OnLost implements [lease.Lease]. It panics if handler is nil.
func (f *Fake) OnLost(handler func(error)) (stop func() bool) {
	must(handler != nil, "Fake.OnLost: handler is nil, and must be given")
	f.update("OnLost", func(*fakeLease) {})
	return f.onLost.Add(handler)
}

// OnBreaking registers a handler. If a break has a positive period, [Fake.Break] calls the handler in a new
// goroutine. The argument of the handler is the time at which the break ends. If another Break shortens the
// period, the handler is called again. The returned function unregisters the handler. OnBreaking panics if
// handler is nil.
func (f *Fake) OnBreaking(handler func(until time.Time)) (stop func() bool) {
	must(handler != nil, "Fake.OnBreaking: handler is nil, and must be given")
	f.update("OnBreaking", func(*fakeLease) {})
	return f.onBreaking.Add(handler)
}

// WhileHeld returns a context that ends when the lease is lost or released, or when the stop window of the
// lease begins. If the lease is not held, or if its stop window has already begun, WhileHeld returns a
// context that has already ended. See [lease.WhileHeld].
func (f *Fake) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	c := notify.NewContext(ctx)
	var refused error
	f.update("WhileHeld", func(l *fakeLease) {
		switch {
		case l.holder != f:
			refused = lease.ErrNotHeld
		case l.stopped:
			refused = l.stopReason()
		default:
			f.contexts.Add(c)
		}
	})
	if refused != nil {
		c.End(refused)
	}
	return c.Context, func() {
		f.contexts.Remove(c)
		c.End(context.Canceled)
	}
}

// Wait implements [lease.Waiter]. It returns nil as soon as no rival holds the lease, or when Release is
// called. If ctx ends before that, Wait returns the error of ctx.
func (f *Fake) Wait(ctx context.Context) error {
	name := "Wait"
	for ctx.Err() == nil {
		free := false
		var freed, released <-chan struct{}
		f.update(name, func(l *fakeLease) {
			free = l.holder == nil || l.holder == f
			freed, released = waitFor(&l.freed), waitFor(&f.released)
		})
		if free {
			return nil
		}
		if name != "" {
			warning := time.AfterFunc(waitWarning, func() {
				f.logger().Warn("leasetest: Wait waits for a rival to release", "lease", f.Name, "since", waitWarning)
			})
			defer warning.Stop()
		}
		select {
		case <-ctx.Done():
		case <-freed:
		case <-released:
			return nil
		}
		name = ""
	}
	return f.opError("wait", ctx.Err())
}

const waitWarning = 10 * time.Second

// sleep waits for d, or until ctx ends. If ctx ends because the lease was released, sleep still waits for d.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		if lease.CodeOf(context.Cause(ctx)) != lease.ErrReleased {
			return ctx.Err()
		}
		<-timer.C
	case <-timer.C:
	}
	return nil
}

func (f *Fake) logger() *slog.Logger { return cmp.Or(f.Logger, slog.Default()) }

func (f *Fake) stopWindow() time.Duration {
	return max(0, cmp.Or(f.StopWindow, 5*time.Second))
}

// contest returns the lease that f and its rivals share. Unless f is a rival, the first call creates it.
func (f *Fake) contest() *fakeLease {
	f.made.Do(func() {
		if f.lease == nil {
			f.lease = new(fakeLease)
		}
	})
	return f.lease
}

// The method update locks the mutex of the lease. It then appends the given method name to the names that
// [Fake.Calls] returns, calls passTime, and calls the given function. If the name is empty, nothing is
// appended. After the method has unlocked the mutex, it calls the functions in l.after.
func (f *Fake) update(method string, fn func(*fakeLease)) {
	l := f.contest()
	l.mu.Lock()
	if last := len(f.calls) - 1; method != "" && (method != "CheckAlive" || last < 0 || f.calls[last] != method) {
		f.calls = append(f.calls, method)
	}
	l.passTime()
	fn(l)
	after := l.after
	l.after = nil
	l.mu.Unlock()
	for _, do := range after {
		do()
	}
}

// opError wraps err in a [lease.OpError], as a session.Session does. An err that is nil or already contains
// an OpError is returned unchanged.
func (f *Fake) opError(op string, err error) error {
	if err == nil || errors.As(err, new(*lease.OpError)) {
		return err
	}
	return &lease.OpError{Op: op, Name: f.Name, Err: err}
}

// The methods of fakeLease require that the caller holds mu.

func (l *fakeLease) lost(reason lease.Code) *lease.LostError {
	return &lease.LostError{Name: l.holder.Name, Token: lease.TokenOf(l.epoch), Reason: reason}
}

// stopReason returns the cause of the contexts that end at the beginning of the stop window.
func (l *fakeLease) stopReason() *lease.LostError {
	lost := l.lost(lease.ErrStopWindow)
	if !l.end.IsZero() {
		lost.Err = lease.ErrBroken
	}
	return lost
}

// During a break, the method passTime compares the current time with the end of the break. If the break is
// over, the method ends the lease. If the break is not over, but its stop window has begun, the method ends
// the contexts of WhileHeld.
func (l *fakeLease) passTime() {
	switch now := time.Now(); {
	case l.end.IsZero():
	case !now.Before(l.end):
		l.lose(lease.ErrBroken)
	case !l.stopped && !now.Before(l.end.Add(-l.holder.stopWindow())):
		l.stopWork()
	}
}

func (l *fakeLease) stopWork() {
	l.stopped = true
	l.after = append(l.after, l.holder.contexts.End(l.stopReason()))
}

// lose makes the lease free and calls the OnLost handlers of its holder.
func (l *fakeLease) lose(reason lease.Code) {
	f, err := l.holder, l.lost(reason)
	f.lost = err
	l.setFree(err)
	l.callLater(f.onLost.Calls(err, f.logPanic))
}

func (l *fakeLease) setFree(cause error) {
	l.after = append(l.after, l.holder.contexts.End(cause))
	l.stopTimers()
	l.holder, l.stopped, l.end = nil, false, time.Time{}
	signal(&l.freed)
}

// callLater arranges that each handler is called in a new goroutine after mu is unlocked.
func (l *fakeLease) callLater(calls []func()) {
	for _, call := range calls {
		l.after = append(l.after, func() { go call() })
	}
}

func (l *fakeLease) stopTimers() {
	for _, timer := range l.timers {
		timer.Stop()
	}
	l.timers = nil
}

// logPanic logs the panic of a handler. Like a session.Session, the Fake can still be used after the panic.
func (f *Fake) logPanic(p any) {
	f.logger().Error("leasetest: a handler of a Fake panicked", "panic", fmt.Sprint(p))
}

// waitFor returns a channel that the next call of signal(c) will close.
func waitFor(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// signal closes the channel *c, unless it is nil, and sets *c to nil.
func signal(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
