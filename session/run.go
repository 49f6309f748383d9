package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/dice"
	"github.com/fencedlease/lease/internal/logqueue"
	"github.com/fencedlease/lease/internal/timing"
)

// RunOptions configure [Run], [TryRun] and [AcquireWait]. A nil *RunOptions means the defaults. If a
// field is zero, its default is used.
type RunOptions struct {
	// AcquireInterval is the time from one attempt to acquire the lease to the next. Each time it is
	// shortened at random by up to half. Run waits for an AcquireInterval if the Lease is not a
	// [lease.Waiter], or if the last attempt failed. While the same error repeats, the time doubles,
	// up to 10 s. If AcquireInterval itself is longer than 10 s, the time between attempts does not
	// double. Default: 1 s.
	AcquireInterval time.Duration

	// WakeJitter spreads the attempts of contenders that were woken at the same time. A contender
	// that was woken waits for a random time of at most WakeJitter before its next attempt. Default:
	// AcquireInterval/10.
	WakeJitter time.Duration

	// ReleaseTimeout bounds the Release after the function has returned. If Run gives up after an
	// attempt with an unknown outcome, it sends a release, which ReleaseTimeout bounds too. These
	// bounds require that the Lease respects its context. Default: 10 s.
	ReleaseTimeout time.Duration

	// Again reports whether Run contends again after a term. A term is the time from a grant to its
	// release. The argument err is the error that Run returns if Again returns false. If Again
	// returns true, Run waits for an AcquireInterval, so that other holders get their turn, and
	// contends again.
	//
	// Run does not call Again if the context is done. Run does not call Again after a loss with the
	// Reason [lease.ErrTakenOver], because otherwise two processes could take the lease from each
	// other forever. TryRun and AcquireWait do not use Again. By default, Run does not contend again.
	Again func(err error) bool

	// Logger receives a record at level Info when a term begins and when a term ends. The second
	// record has the error of the function. A slow Logger does not delay Run, even if the Logger
	// never returns. Default: slog.Default() at the time of each record. Use slog.DiscardHandler to
	// turn logging off.
	Logger *slog.Logger

	Clock lease.Clock // source of time; default: package time
	Rand  io.Reader   // source of the jitter, read without a lock; default: crypto/rand
}

func (o *RunOptions) complete() (*RunOptions, error) {
	var c RunOptions
	if o != nil {
		c = *o
	}
	byDefault(&c.AcquireInterval, time.Second)
	byDefault(&c.WakeJitter, c.AcquireInterval/10)
	byDefault(&c.ReleaseTimeout, 10*time.Second)
	if c.Clock == nil {
		c.Clock = timing.System{}
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"AcquireInterval", c.AcquireInterval}, {"WakeJitter", c.WakeJitter}, {"ReleaseTimeout", c.ReleaseTimeout}} {
		if f.value < 0 {
			return nil, &lease.FieldError{Field: "RunOptions." + f.name, Value: f.value.String(), Bound: "must not be negative", Code: lease.ErrOption}
		}
	}
	return &c, nil
}

// Run contends for the lease until it is held, and then calls f. The context of f ends before
// another holder can have the lease (see [lease.WhileHeld]). The lease is renewed until f has
// returned. Run then releases the lease. After the release, Run returns, or contends again if Again
// returns true. Run works with any [lease.Lease]. If the Lease issues no tokens, tok is empty.
//
// The function f should return soon after its context has ended. If f returns within one StopWindow
// after its context has ended, no other holder can begin before f has returned. Run waits until f has
// returned, however long that takes.
//
// Run returns the error of f. If the context of f has ended because the lease was lost or about to
// end, Run adds a [*lease.LostError] to the error of f. It adds the LostError even if f returned nil.
// For this error, errors.Is(err, lease.ErrLost) is true. If the release fails, Run adds the error of
// the release. If f panics, Run releases the lease, and the panic continues.
//
// If ctx ends while f runs, Run returns the error of f, which may be nil. If ctx ends while Run
// contends, Run returns an error that matches both ctx.Err() and context.Cause(ctx). The returned
// error also matches the error of the last attempt, or [lease.ErrHeldByOther] if another holder had
// the lease. If an earlier term has failed, the returned error also matches the error of that term.
//
// While Run contends, it retries after a temporary error. Run returns an error at once if no Acquire
// can ever be granted, for example because the owner is malformed. A store can mark an error as
// permanent with [lease.Permanent], for example because a table is missing. If an error that is
// marked as permanent repeats unchanged for 30 s, Run returns this error. While the lease is held,
// renewals continue even after a permanent error.
//
// The context of f also ends if f itself gives the lease up. Even so, f may call HandOver or Release
// with this context. If f calls Close, it needs a context that does not end with the lease, such as
// one from context.WithoutCancel. Two calls of Run with the same Lease act as one holder, and the
// first call that ends releases the lease for both. So use a separate Lease for each call of Run.
func Run(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) error {
	r, err := newRunner(ctx, "Run", l, f, o)
	if err != nil {
		return err
	}
	defer r.log.Flush()
	for {
		tok, unknown, err := r.contend(ctx)
		if unknown {
			err = joinErrors(err, r.bounded(ctx, r.settle))
		}
		if err != nil {
			return joinErrors(err, r.failed)
		}
		r.failed = r.term(ctx, tok, f)
		if ctx.Err() != nil || r.Again == nil || errors.Is(r.failed, lease.ErrTakenOver) || !r.Again(r.failed) {
			return r.failed
		}
		if r.pause(ctx, r.AcquireInterval) != nil {
			return joinErrors(stopped(ctx), r.failed)
		}
	}
}

// TryRun calls f as Run does if the lease can be acquired now, and returns true. Use TryRun for a job
// that a scheduler starts on many machines and that one machine should do. On the other machines,
// TryRun returns (false, nil). If TryRun returns false and an error, it is unknown whether the lease
// can be acquired. After such an error, TryRun releases the lease in case the authority has granted
// it.
//
// TryRun returns (false, nil) as soon as it knows that another holder has the lease. If the authority
// has a clock, TryRun returns (false, nil) at the first refusal. If the authority has no clock,
// TryRun waits until the other holder renews the lease (see [Session.TryAcquire]).
//
// A lease alone does not make a job run once. A process that starts after the job is finished
// acquires the lease and runs the job again. To run a job only once, note in the data of the job that
// the job is finished, and protect this note with the same guard as the data.
func TryRun(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) (ran bool, err error) {
	r, err := newRunner(ctx, "TryRun", l, f, o)
	if err != nil {
		return false, err
	}
	defer r.log.Flush()
	tok, ok, err := tryAcquire(ctx, l)
	switch {
	case ok:
		return true, r.term(ctx, tok, f)
	case err == nil:
		return false, nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = stopped(ctx)
	}
	if !certain(err) {
		err = joinErrors(err, r.bounded(ctx, r.settle))
	}
	return false, err
}

// TryAcquire tries to acquire the lease, and returns its fencing token. It returns (false, nil) only
// if another holder certainly has the lease. If the authority has a clock, TryAcquire returns at the
// first refusal.
//
// An authority without a clock, such as that of etcdlease, cannot know how old a record is when it
// reads the record for the first time. With such an authority, TryAcquire waits. If the holder renews
// the record, TryAcquire returns false. If the record expires without a renewal, the holder is dead,
// and TryAcquire acquires the lease.
func (s *Session) TryAcquire(ctx context.Context) (lease.Token, bool, error) {
	for {
		o := s.acquire(ctx)
		if o.err != errPerhapsFree {
			return s.acquired(o)
		}
		certain := func(res lease.Result) bool { return res.MinRemaining > 0 }
		locked, err := s.wait(ctx, certain)
		switch {
		case err == error(lease.ErrReleased): // as for an Acquire that is in flight
			return s.acquired(outcome{err: err})
		case locked || err != nil:
			return "", false, err
		}
	}
}

// tryAcquire calls TryAcquire if the Lease has this method. Otherwise it calls
// [lease.AcquireWithToken].
func tryAcquire(ctx context.Context, l lease.Lease) (lease.Token, bool, error) {
	if l, ok := l.(interface {
		TryAcquire(context.Context) (lease.Token, bool, error)
	}); ok {
		return l.TryAcquire(ctx)
	}
	return lease.AcquireWithToken(ctx, l)
}

// AcquireWait contends until the lease is held, and returns its fencing token. AcquireWait returns
// the same errors as Run returns while it contends. If AcquireWait fails after an attempt with an
// unknown outcome, it releases the lease in case the attempt was granted. For this release,
// AcquireWait calls Settle if the Lease is a [Session], and Release otherwise. Release also ends the
// lease and the attempts of other callers with the same Lease.
func AcquireWait(ctx context.Context, l lease.Lease, o *RunOptions) (lease.Token, error) {
	r, err := newRunner(ctx, "AcquireWait", l, func(context.Context, lease.Token) error { return nil }, o)
	if err != nil {
		return "", err
	}
	tok, unknown, err := r.contend(ctx)
	if unknown {
		settled := r.settle(ctx) // sends the release, and does not wait if ctx is done
		if ctx.Err() == nil {
			err = joinErrors(err, settled)
		}
	}
	return tok, err
}

// A runner is the state of one call of Run, TryRun or AcquireWait.
type runner struct {
	*RunOptions
	lease  lease.Lease
	log    logqueue.Queue
	failed error // error of the last term
}

func newRunner(ctx context.Context, name string, l lease.Lease, f func(context.Context, lease.Token) error, o *RunOptions) (*runner, error) {
	needContext(ctx, name)
	o, err := o.complete()
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, lease.Missing(name + ".l")
	case f == nil:
		return nil, lease.Missing(name + ".f")
	}
	return &runner{RunOptions: o, lease: l, log: logqueue.Queue{To: o.Logger}}, nil
}

// term calls f while the lease is held, and then releases the lease.
func (r *runner) term(ctx context.Context, tok lease.Token, f func(context.Context, lease.Token) error) (err error) {
	held, cancel := lease.WhileHeld(ctx, r.lease)
	r.info("lease: term began", tok)
	defer func() { // runs even if f panics or ends its goroutine
		over := held.Err() != nil
		cancel() // makes a Session detect a loss that it has not detected yet
		cause, lost := context.Cause(held), (*lease.LostError)(nil)
		switch {
		case !over && !errors.As(cause, &lost): // f returned before its context ended
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), cause): // the caller ended ctx
		case errors.Is(cause, lease.ErrReleased) && !errors.As(cause, &lost): // f released the lease
		case !errors.Is(err, cause):
			err = joinErrors(err, cause)
		}
		err = joinErrors(err, r.bounded(ctx, r.lease.Release))
		r.info("lease: term ended", tok, "err", err)
	}()
	switch {
	case held.Err() == nil:
		return f(held, tok)
	case ctx.Err() != nil:
		return stopped(ctx)
	}
	return context.Cause(held)
}

func (r *runner) info(text string, tok lease.Token, args ...any) {
	if l, ok := r.lease.(interface{ Name() string }); ok {
		args = append(args, "name", l.Name())
	}
	r.log.Log(slog.LevelInfo, text, append(args, "token", tok)...)
}

// bounded calls f with a context that lasts for the ReleaseTimeout, even if ctx ends earlier.
func (r *runner) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := timing.WithTimeout(context.WithoutCancel(ctx), r.Clock, r.ReleaseTimeout)
	defer cancel()
	return f(ctx)
}

// settle releases the lease in case an attempt with an unknown outcome was granted. For a Session,
// settle does not end the lease or the attempts of other callers.
func (r *runner) settle(ctx context.Context) error {
	if l, ok := r.lease.(interface{ Settle(context.Context) error }); ok { // a Session, or a type that embeds one
		return l.Settle(ctx)
	}
	return r.lease.Release(ctx)
}

// contend tries to acquire the lease until the lease is held. If contend fails and unknown is true,
// an attempt may still be granted, and the caller must call settle.
func (r *runner) contend(ctx context.Context) (tok lease.Token, unknown bool, err error) {
	c := contention{interval: r.AcquireInterval}
	for {
		over := ctx.Err() // if ctx is done already, the Lease sends no request
		tok, ok, err := lease.AcquireWithToken(ctx, r.lease)
		ended := ctx.Err()
		switch {
		case ok:
			return tok, false, nil
		case over != nil && errors.Is(err, over):
		case ended != nil && errors.Is(err, ended):
			// The Lease itself undoes the attempt that ctx has ended. The outcome of an earlier
			// attempt may still be unknown, so settle sends a release. It does not wait, because ctx
			// is done.
			_ = r.settle(ctx)
			unknown = false
		case err != nil && !certain(err):
			unknown = true
		}
		if ended == nil && c.tried(r.Clock.Now(), err) {
			return "", unknown, err
		}
		if err := r.waitForTurn(ctx, &c, err == nil); err != nil {
			return "", unknown, err
		}
		if ctx.Err() != nil {
			return "", unknown, c.stopped(ctx)
		}
	}
}

// waitForTurn waits until another attempt may succeed. It returns an error if no attempt can ever
// succeed.
func (r *runner) waitForTurn(ctx context.Context, c *contention, locked bool) error {
	if l, ok := r.lease.(lease.Waiter); ok && locked {
		err := l.Wait(ctx)
		if err == nil {
			_ = timing.Sleep(ctx, r.Clock, time.Duration(dice.Dice{Reader: &r.Rand}.Number()*float64(r.WakeJitter)))
			return nil
		}
		if hopeless(err) {
			return err
		}
	}
	_ = r.pause(ctx, c.pause)
	return nil
}

// pause waits for d, shortened at random by up to half. If ctx ends first, it returns the error of
// ctx.
func (r *runner) pause(ctx context.Context, d time.Duration) error {
	return timing.Sleep(ctx, r.Clock, dice.Dice{Reader: &r.Rand}.Shorten(d, 0.5))
}

// A contention is the history of the attempts to acquire the lease.
type contention struct {
	interval time.Duration
	last     error         // error of the last attempt
	since    time.Time     // first of the attempts in a row that failed with that error
	pause    time.Duration // until the next attempt
}

const (
	longestPause  = 10 * time.Second // limit for the pause after a failed attempt, or AcquireInterval if that is longer
	permanentTime = 30 * time.Second // a permanent error that has repeated for so long is returned
)

// tried records the error of an attempt that was not granted. A nil error means that the lease is
// locked. It reports whether every further attempt would fail too.
func (c *contention) tried(now time.Time, err error) (over bool) {
	if err == nil {
		c.last, c.since, c.pause = lease.ErrHeldByOther, now, c.interval
		return false
	}
	if c.last != nil && c.last.Error() == err.Error() {
		c.pause = min(2*c.pause, max(longestPause, c.interval))
	} else {
		c.since, c.pause = now, c.interval
	}
	c.last = err
	return hopeless(err) || errors.As(err, new(*lease.PermanentError)) && now.Sub(c.since) >= permanentTime
}

// stopped returns the error of a contention that ended because ctx is done.
func (c *contention) stopped(ctx context.Context) error {
	if c.last == nil {
		return stopped(ctx)
	}
	return fmt.Errorf("%w; the last try to acquire: %w", stopped(ctx), c.last)
}

// stopped returns one error that matches both ctx.Err() and context.Cause(ctx).
func stopped(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// joinErrors joins two errors as errors.Join does, but with their texts on one line.
func joinErrors(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}

// hopeless reports whether it is useless to retry a call that has returned err.
func hopeless(err error) bool {
	switch code := lease.CodeOf(err); code {
	case 0:
		return errors.Is(err, errors.ErrUnsupported)
	case lease.ErrConflict, lease.ErrCorrupt, lease.ErrReleased, lease.ErrExpired:
		return false // ErrReleased: a Release has ended the call. ErrExpired: the grant came too late.
	default:
		return !code.Refusal() || code == lease.ErrEpochLimit
	}
}
