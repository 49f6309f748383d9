package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/logqueue"
	"github.com/fencedlease/lease/internal/retry"
)

// RunOptions configure [Run], [TryRun] and [AcquireWait]. A nil *RunOptions means the defaults. If a field is
// zero, its default is used. The three functions return a [*lease.FieldError] with the code [lease.ErrOption]
// if a time is negative. Except for WakeJitter, a time that is not zero must also be at least 1 ms.
type RunOptions struct {
	// AcquireInterval is the time between two attempts to acquire the lease, shortened at random by up to
	// half. Run waits for an AcquireInterval after each failed attempt. After an attempt that was refused
	// because another holder has the lease, Run waits for an AcquireInterval only if the Lease is not a
	// [lease.Waiter]. While attempts keep failing, the interval doubles each time, up to 10 s or
	// AcquireInterval, whichever is longer. Default: 1 s.
	AcquireInterval time.Duration

	// WakeJitter prevents many waiting processes from sending requests at the same moment when the lease
	// becomes free. When the lease may be free, a waiting [Session] sleeps for a random time of at most
	// WakeJitter, and then reads the record. If the lease is still free, the Session tries to acquire it. One
	// release therefore costs each waiting Session at most two requests. For any other [lease.Waiter], Run
	// sleeps after Wait has returned. Default: AcquireInterval/10.
	WakeJitter time.Duration

	// ReleaseTimeout is the time limit of the Release that Run calls after its function has returned. The
	// limit also applies to the release that Run sends if it stops trying after an attempt with an unknown
	// outcome. The error of a release that timed out does not match context.DeadlineExceeded. A Lease that
	// ignores its context ignores the limit. Default: 10 s.
	ReleaseTimeout time.Duration

	// The function Again decides whether Run contends for the lease again after a term. A term lasts from a
	// grant to its release. The argument of the function is the error of the term, which can be nil. If the
	// function returns false, Run returns this error. If the function returns true, Run drops the error,
	// waits for one AcquireInterval, so that other holders get their turn, and contends again. Default: Run
	// does not contend again.
	//
	// To stop contending after a break, let Again return false if the error matches [lease.ErrBroken] or
	// [lease.ErrIDMismatch]. After a break, ErrIDMismatch means that another holder has acquired the lease.
	// If the holder could not reach the authority after the break, the error matches neither ErrBroken nor
	// ErrIDMismatch. To make sure that Run stops even then, end the ctx of Run.
	//
	// If ctx is done, Run returns without a call of the function Again. The same is true after a loss with
	// the Reason [lease.ErrTakenOver], because two processes could otherwise take the lease from each other
	// forever. TryRun and AcquireWait do not use the field Again.
	Again func(err error) bool

	// MinHold is how long the lease stays locked after the grant, even if the function that was passed to Run
	// or TryRun returns earlier or fails. If a scheduler starts a short job on many machines, whose clocks
	// differ, MinHold prevents a late machine from running the job once more. Run does not wait for MinHold:
	// when the function has returned, the Session sends no more renewals, and releases the lease once MinHold
	// has passed.
	//
	// If the process crashes, or the Session is closed after Run, the lease stays locked until its Duration
	// ends. Therefore the Duration must be finite and at least MinHold. A Release or a break ends the lease
	// at once. The Lease must be a [Session] or a type that embeds a Session. Default: 0.
	MinHold time.Duration

	// ProgressTimeout is the longest time that the function that was passed to Run or TryRun may work without
	// a call of [Progress]. After that time, the lease is lost with the Reason [lease.ErrNoProgress], and is
	// no longer renewed. The timeout applies until the function returns, even after its context has ended.
	//
	// Another holder can get the lease when the function has returned, or when the last renewal expires. If
	// the function ignores its context, only the fencing token protects the data.
	//
	// The Lease must be a [Session] or a type that embeds a Session. Default: 0, no limit.
	ProgressTimeout time.Duration

	// Logger receives records at Info when Run waits for another holder, and when a term begins or ends. If a
	// term ends with a loss or an error, the record has the level Warn. If the Lease is not a [Session], a
	// failed attempt to acquire the lease also causes a record at Warn. The page docs/operate.md lists all
	// records. A slow Logger delays the end of Run by at most a tenth of a second. Default: the Logger of the
	// Session. If the Lease neither is a Session nor embeds one, the default is slog.Default() at the time of
	// each record. To turn logging off, use slog.DiscardHandler.
	Logger *slog.Logger
}

// complete returns a copy of o with the defaults filled in. If s is nil, the Lease contains no Session.
func (o *RunOptions) complete(s *Session) (*RunOptions, error) {
	var c RunOptions
	if o != nil {
		c = *o
	}
	byDefault(&c.AcquireInterval, time.Second)
	byDefault(&c.WakeJitter, c.AcquireInterval/10)
	byDefault(&c.ReleaseTimeout, 10*time.Second)
	most := time.Duration(0) // the longest MinHold
	if s != nil {
		most = s.checkedOptions().Duration
	}
	var errs []error
	for _, f := range []struct {
		name            string
		value, shortest time.Duration
	}{{"AcquireInterval", c.AcquireInterval, shortest}, {"WakeJitter", c.WakeJitter, 0}, {"ReleaseTimeout", c.ReleaseTimeout, shortest}, {"MinHold", c.MinHold, shortest}, {"ProgressTimeout", c.ProgressTimeout, shortest}} {
		bound := ""
		needsSession := f.name == "MinHold" || f.name == "ProgressTimeout"
		switch {
		case f.value == 0:
			continue
		case f.value < 0:
			bound = "must not be negative"
		case f.value < f.shortest:
			bound = tooShort
		case needsSession && s == nil:
			bound = "must be 0 unless the Lease is a Session"
		case f.name == "MinHold" && most == lease.Infinite:
			bound = "must be 0, because the Duration of the Session is infinite"
		case f.name == "MinHold" && f.value > most:
			bound = fmt.Sprintf("must be at most the Duration of the Session, %v", most)
		default:
			continue
		}
		errs = append(errs, &lease.FieldError{Field: "RunOptions." + f.name, Value: f.value.String(), Bound: bound, Code: lease.ErrOption})
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return &c, nil
}

// Run acquires the lease, renews it while f runs, and releases it when f has returned. Run waits while
// another holder has the lease, and tries again while the store does not answer.
//
// The context of f ends when ctx ends, and before another holder can have the lease. If f returns within one
// StopWindow after that, no other holder works at the same time, except as Conditions in the package
// documentation says. Goroutines that f starts must use the context of f, and must end before f returns.
//
// Run returns the error of f. After a loss, the error also matches lease.ErrLost, even if f has returned nil.
// It includes the error of a failed release. [Stopped] tells an orderly stop from a failure. docs/holding.md
// lists the other errors, such as a [*lease.FieldError] if another call uses the same Session.
func Run(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) error {
	r, err := newRunner(ctx, "Run", l, f, o)
	if err != nil {
		return err
	}
	defer r.flush()
	end, ok := r.begin()
	if !ok {
		return r.inUse("Run.l")
	}
	defer end()
	return r.repeat(ctx, func() (granted, takenOver bool, err error) { return r.once(ctx, r.watched(f)) })
}

// once acquires the lease, calls f, and releases the lease.
func (r *runner) once(ctx context.Context, f func(context.Context, lease.Token) error) (granted, takenOver bool, err error) {
	tok, unknown, err := r.contend(ctx)
	if unknown {
		err = r.releaseUncertainAfter(ctx, err)
	}
	if err != nil {
		return false, false, err
	}
	takenOver, err = r.term(ctx, tok, f)
	return true, takenOver, err
}

// The parameter once is a function that holds the lease for one term. The method r.repeat calls this function
// for one term after another. It stops if the function could not acquire the lease, or if Run must not
// contend for the lease again.
func (r *runner) repeat(ctx context.Context, once func() (granted, takenOver bool, err error)) error {
	for {
		granted, takenOver, err := once()
		if !granted || takenOver || ctx.Err() != nil {
			return err
		}
		if r.Again == nil || !r.Again(err) {
			return err
		}
		if r.pause(ctx, r.AcquireInterval) != nil {
			return retry.Stopped(ctx, nil)
		}
	}
}

// TryRun is like Run, but does not wait while another holder has the lease. If TryRun acquires the lease, it
// calls f and returns true. If it finds that another holder has the lease, TryRun returns (false, nil). Use
// TryRun for a job that a scheduler starts on many machines, but that only one machine should do. If TryRun
// returns false and an error, it could not find out who has the lease, and has released the lease in case it
// was granted after all.
//
// If the authority has no clock, only a renewal shows that the other holder is alive, so TryRun waits for
// such a renewal (see [Session.AcquireUnlessHeld]).
//
// TryRun also returns (false, nil) while another call of Run or TryRun is using the same [Session], for
// example because a job is still running when its scheduler starts it again. That call may be running its
// function, waiting for the lease, or releasing the lease.
//
// A lease alone does not make a job run once: a process that starts after the job is finished runs it again.
// Therefore a finished job should store in its own data that it is finished. Protect this write with the same
// guard as every other write to the data.
func TryRun(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) (ran bool, err error) {
	r, err := newRunner(ctx, "TryRun", l, f, o)
	if err != nil {
		return false, err
	}
	defer r.flush()
	end, ok := r.begin()
	switch {
	case !ok && ctx.Err() != nil:
		return false, retry.Stopped(ctx, nil)
	case !ok:
		return false, nil
	}
	defer end()
	began := r.clock.Now()
	tok, ok, err := r.lease.AcquireUnlessHeld(ctx)
	r.reportContention(ContendInfo{Token: tok, Err: err, Took: r.clock.Now().Sub(began), Attempts: 1})
	switch {
	case ok:
		_, err = r.term(ctx, tok, r.watched(f))
		return true, err
	case err == nil:
		return false, nil
	}
	unknown := mayBeGranted(err)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = retry.Stopped(ctx, nil)
	}
	if unknown {
		err = r.releaseUncertainAfter(ctx, err)
	}
	return false, err
}

// AcquireWait tries to acquire the lease until an attempt is granted, and returns the fencing token. If l is
// a [Session] that already holds the lease, AcquireWait returns its token at once.
//
// While a call of [Run] or [TryRun] uses the Session, AcquireWait returns a [*lease.FieldError].
//
// Once AcquireWait has acquired the lease, it is renewed until Release is called, even after ctx has ended.
// Do the work under the context of [lease.WhileHeld]. When the work is done, call the function that WhileHeld
// has returned, and then Release. Do not call [Run] or [TryRun] with the same Lease meanwhile, because each
// of them releases the lease at its end.
//
// If AcquireWait fails, it returns the error that Run returns when it cannot acquire the lease. If the last
// attempt had an unknown outcome, AcquireWait first calls [Session.ReleaseUncertain], in case the lease was
// granted. If the Lease is not a Session, AcquireWait calls Release instead. That Release also affects other
// callers that use the same Lease: it ends a lease that they have acquired, and an attempt that they have
// begun.
func AcquireWait(ctx context.Context, l lease.Lease, o *RunOptions) (lease.Token, error) {
	r, err := newRunner(ctx, "AcquireWait", l, func(context.Context, lease.Token) error { return nil }, o)
	if err != nil {
		return "", err
	}
	defer r.flush()
	if r.session != nil && r.session.running.Load() {
		return "", r.inUse("AcquireWait.l")
	}
	tok, unknown, err := r.contend(ctx)
	if unknown {
		released := r.lease.ReleaseUncertain(ctx) // sends the release, and does not wait if ctx is done
		if ctx.Err() == nil {
			err = joinUnlessSame(err, released)
		}
	}
	return tok, err
}

// A runner is the state of one call of Run, TryRun or AcquireWait.
type runner struct {
	*RunOptions
	lease   subject
	session *Session // the lease, or the Session that it embeds; nil if there is none
	clock   lease.Clock
	log     *logqueue.Queue
	logged  bool // whether this call has added a record to log

	releaseLater func(release func() error) // begins a release for which RunAll waits; if nil, the term itself waits for the release
}

// flush gives the Logger a short time to take the records of this call.
func (r *runner) flush() {
	if r.logged {
		r.log.Flush()
	}
}

func newRunner(ctx context.Context, name string, l lease.Lease, f func(context.Context, lease.Token) error, o *RunOptions) (*runner, error) {
	needContext(ctx, name)
	s, isSession := l.(*Session)
	if isSession && s == nil {
		l = nil
	}
	if l != nil {
		s = subjectOf(l).self()
	}
	o, err := o.complete(s)
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, fields.Missing(name + ".l")
	case f == nil:
		return nil, fields.Missing(name + ".f")
	}
	r := &runner{RunOptions: o, lease: subjectOf(l), session: s, clock: clock.System{}, log: &logqueue.Queue{To: o.Logger}}
	if s != nil {
		r.clock = s.o.Clock
		if o.Logger == nil {
			r.log = &s.log // keeps the records of the Session and of Run in order
		}
	}
	return r, nil
}

// The method begin reports whether Run or TryRun may use the Lease. If the result is true, the caller must
// call the returned function when it no longer uses the Lease. A Session serves only one call of Run or
// TryRun at a time. Otherwise the call that ends first would release the lease while the functions of the
// other calls are still running.
func (r *runner) begin() (end func(), ok bool) {
	if r.session == nil {
		return func() {}, true
	}
	return func() { r.session.running.Store(false) }, r.session.running.CompareAndSwap(false, true)
}

func (r *runner) inUse(field string) error {
	return &lease.FieldError{Field: field, Value: strconv.Quote(r.lease.Name()), Bound: "must not be in use by another call of Run or TryRun", Code: lease.ErrOption}
}

// The method r.term calls f while the lease is held, and then releases the lease. The result takenOver
// reports whether another Session with the same owner took the lease over before f returned. The error of f
// cannot show such a take-over, because this error may be about a different lease.
func (r *runner) term(ctx context.Context, tok lease.Token, f func(context.Context, lease.Token) error) (takenOver bool, err error) {
	granted := r.clock.Now()
	held, cancel := r.lease.WhileHeld(ctx)
	r.record(slog.LevelInfo, "lease: term began", "token", tok)
	returned := r.warnIfLate(held, tok)
	defer func() { // runs even if f panics or ends its goroutine
		ended := held.Err() != nil
		returned()
		cancel() // makes a Session detect a loss that it has not noticed yet
		cause := context.Cause(held)
		if r.session != nil && errors.Is(cause, lease.ErrStopWindow) {
			cause = cmp.Or(r.session.takeOverOf(tok), cause) // another Session took the lease over while f stopped
		}
		takenOver = errors.Is(cause, lease.ErrTakenOver)
		if mustReport(ctx, cause, ended) && !errors.Is(err, cause) {
			err = holder.Join(err, cause)
		}
		if r.MinHold == 0 || !r.session.holdUntil(tok, granted, r.MinHold) {
			err = holder.Join(err, r.release(ctx))
		}
		level := slog.LevelInfo
		if errors.Is(err, lease.ErrLost) || err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrReleased) {
			level = slog.LevelWarn
		}
		r.record(level, "lease: term ended", "err", err, "token", tok)
	}()
	switch {
	case held.Err() == nil:
		err = f(held, tok)
	case ctx.Err() != nil:
		err = retry.Stopped(ctx, nil)
	default:
		err = context.Cause(held)
	}
	return takenOver, err
}

// warnIfLate writes a log record if the work goes on for a StopWindow after its context has ended, because
// another holder can then work at the same time, and Run cannot return. The caller must call the returned
// function when the work has returned.
func (r *runner) warnIfLate(held context.Context, tok lease.Token) (returned func()) {
	if r.session == nil || r.session.o.StopWindow < 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(held, func() {
		defer close(ended)
		select {
		case <-done:
		case <-r.clock.After(r.session.o.StopWindow):
			r.record(slog.LevelWarn, "lease: the work goes on, although its context has ended", "for", r.session.o.StopWindow, "token", tok)
		}
	})
	return func() {
		close(done)
		if !stop() {
			<-ended
		}
	}
}

// release releases the lease at the end of a term. The result does not include a loss, because the caller has
// already decided whether to report the loss.
func (r *runner) release(ctx context.Context) error {
	if r.session != nil {
		r.session.forgetLoss()
	}
	release := func() error {
		err := r.callWithTimeout(ctx, r.lease.Release)
		if _, isLoss := err.(*lease.LostError); isLoss {
			return nil
		}
		return err
	}
	if r.releaseLater != nil {
		r.releaseLater(release)
		return nil
	}
	return release()
}

// If the error of Run must include the cause of the context of f, mustReport returns true. The parameter
// ended says whether the context of f ended before f returned. If the cause is also the cause of ctx, it is
// left out, because the caller knows it. Otherwise a loss is always included. Any other cause is included
// only if the context of f ended before f returned, and if f did not release the lease.
func mustReport(ctx context.Context, cause error, ended bool) bool {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), cause) {
		return false
	}
	return errors.As(cause, new(*lease.LostError)) || ended && !errors.Is(cause, lease.ErrReleased)
}

// The method record writes a log record. If the Lease has a name and an owner, they are part of the log
// record.
func (r *runner) record(level slog.Level, text string, args ...any) {
	if owner := r.lease.Owner(); owner != "" {
		args = append(args, "owner", owner)
	}
	if name := r.lease.Name(); name != "" {
		args = append([]any{"name", name}, args...)
	}
	r.logged = true
	r.log.Log(level, text, args...)
}

// callWithTimeout calls f with a context that ends after the ReleaseTimeout, but not when ctx ends.
func (r *runner) callWithTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), r.clock, r.ReleaseTimeout)
	defer cancel()
	return timedOut(ctx, "ReleaseTimeout", r.ReleaseTimeout, f(ctx))
}

// releaseUncertainAfter calls ReleaseUncertain after a failed attempt. It returns the error of the attempt,
// joined with the error of the release, if any.
func (r *runner) releaseUncertainAfter(ctx context.Context, err error) error {
	return joinUnlessSame(err, r.callWithTimeout(ctx, r.lease.ReleaseUncertain))
}

// joinUnlessSame is like holder.Join, but drops the second error if both have the same cause. For
// example, an acquire and the release after it can fail with the same error of the store.
func joinUnlessSame(err, more error) error {
	if err != nil && more != nil && cause(err) == cause(more) {
		return err
	}
	return holder.Join(err, more)
}

// The function cause returns the text of err. If err wraps an OpError, the text contains neither the
// operation nor the name of the lease.
func cause(err error) string {
	if op := (*lease.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
