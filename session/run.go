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

// RunOptions configure [Run], [TryRun] and [AcquireWait]. A nil *RunOptions and the zero value of
// each field mean the defaults.
type RunOptions struct {
	// AcquireInterval is the time from one try to the next, shortened at random by up to half, where
	// the Lease cannot Wait or the last try failed. While the same error repeats, the time doubles
	// up to 10 s, or stays AcquireInterval if that is longer. Default: 1 s.
	AcquireInterval time.Duration

	// WakeJitter is the window over which contenders that were woken together are spread at
	// random. Default: AcquireInterval/10.
	WakeJitter time.Duration

	// ReleaseTimeout bounds the Release after the function has returned, and after a try whose
	// outcome is unknown when Run ends, if the Lease keeps to its context. Default: 10 s.
	ReleaseTimeout time.Duration

	// Again decides after every term, the time from a grant to its release, whether to contend
	// again, an AcquireInterval later, so that others get their turn; err is what Run would return.
	// Run does not ask once the context is done, and not after a loss by [lease.ErrTakenOver]:
	// two processes that take over from each other would otherwise never stop. TryRun and
	// AcquireWait do not use it. Default: never.
	Again func(err error) bool

	// Logger gets the beginning and the end of every term at Info, with the error of the function.
	// It delays nothing, even if it never returns. Default: slog.Default(), as it is at each record;
	// slog.DiscardHandler silences it.
	Logger *slog.Logger

	Clock lease.Clock // default: package time
	Rand  io.Reader   // source of the jitter, read by this call only; default: crypto/rand
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

// Run is the life of a holder: it contends for the lease until it is held, calls f under a
// context that ends before the lease can be anybody else's ([lease.WhileHeld]), has the lease
// renewed until f has really returned, and releases it. Then it returns, or contends again if
// Again says so. It works with any [lease.Lease]; the token is empty if that issues none.
//
// f should return soon after its context ends: within the Session's StopWindow, if no other holder
// may begin before it has stopped. Run waits for it however long it takes.
//
// The error is that of f. If not the caller but the library ended the context of f, because the
// lease was lost or about to end, the error is joined by a [*lease.LostError], even if f returned
// nil; errors.Is(err, lease.ErrLost) is true of it. It is joined by the error of the release, if
// there was one. If f panics the lease is released and the panic goes on.
//
// If ctx ends while f runs, f's own error is returned, and nil stays nil. If ctx ends while Run
// contends, the error matches both ctx.Err() and context.Cause(ctx), and the error of the last
// try, or [lease.ErrHeldByOther], and that of the last term, if there was one.
//
// While Run contends, an error that may pass is tried again. An error that says that no Acquire
// can ever be granted, such as a malformed owner, is returned at once. One that the store has
// marked with [lease.Permanent], such as a missing table, is returned after it has come unchanged
// for 30 s. A lease that is held is renewed whatever the error is.
//
// The context of f ends even if f itself gives the lease up. A HandOver or a Release in f may be
// called with it all the same; a Close needs a context that does not end, such as that of
// context.WithoutCancel. Two Runs with the same Lease are one holder, and the first to end
// releases it: use a Lease for each.
func Run(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) error {
	r, err := newRunner(ctx, "Run", l, f, o)
	if err != nil {
		return err
	}
	defer r.log.Flush()
	for {
		tok, unknown, err := r.contend(ctx)
		if unknown {
			err = also(err, r.bounded(ctx, r.settle))
		}
		if err != nil {
			return also(err, r.failed)
		}
		r.failed = r.term(ctx, tok, f)
		if ctx.Err() != nil || r.Again == nil || errors.Is(r.failed, lease.ErrTakenOver) || !r.Again(r.failed) {
			return r.failed
		}
		if r.pause(ctx, r.AcquireInterval) != nil {
			return also(stopped(ctx), r.failed)
		}
	}
}

// TryRun calls f as Run does if the lease can be had now, and reports whether it did. It is for
// work that one of many processes is to do when a scheduler starts them all: the others return
// (false, nil). An error without ran means that it is not known whether the lease can be had; what
// may have been granted is released.
//
// TryRun gives up as soon as it knows that another holder has the lease: at the first refusal, or over
// a store without a clock once the record was renewed ([Session.TryAcquire]).
//
// A lease alone does not make a job run once: a process that starts after the first has finished
// runs it again. Keep a mark of what is done with the data of the job, under the guard.
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
		err = also(err, r.bounded(ctx, r.settle))
	}
	return false, err
}

// TryAcquire is an Acquire that returns false only if another holder certainly has the lease:
// where the authority has a clock, as soon as it is refused. An authority without a clock, such as
// that of etcdlease, does not know how old a record is that it sees for the first time. There
// TryAcquire waits: it returns false once it has seen the record renewed, and takes a record that
// runs out meanwhile, because its holder is dead.
func (s *Session) TryAcquire(ctx context.Context) (lease.Token, bool, error) {
	for {
		o := s.acquire(ctx)
		if o.err != errPerhapsFree {
			return s.acquired(o)
		}
		certain := func(res lease.Result) bool { return res.MinRemaining > 0 }
		locked, err := s.wait(ctx, certain)
		switch {
		case err == error(lease.ErrReleased): // as an Acquire under way
			return s.acquired(outcome{err: err})
		case locked || err != nil:
			return "", false, err
		}
	}
}

// tryAcquire is the TryAcquire of a Lease that has one, and otherwise an Acquire.
func tryAcquire(ctx context.Context, l lease.Lease) (lease.Token, bool, error) {
	if l, ok := l.(interface {
		TryAcquire(context.Context) (lease.Token, bool, error)
	}); ok {
		return l.TryAcquire(ctx)
	}
	return lease.AcquireWithToken(ctx, l)
}

// AcquireWait is an Acquire that waits: it contends until the lease is held, and returns its
// fencing token. It fails as Run does while it contends. What an Acquire of unknown outcome may be
// granted is then released; with a Lease that is not a [Session] that ends what others hold or try
// with it, too.
func AcquireWait(ctx context.Context, l lease.Lease, o *RunOptions) (lease.Token, error) {
	r, err := newRunner(ctx, "AcquireWait", l, func(context.Context, lease.Token) error { return nil }, o)
	if err != nil {
		return "", err
	}
	tok, unknown, err := r.contend(ctx)
	if unknown {
		settled := r.settle(ctx) // if ctx is done this sends, and does not wait
		if ctx.Err() == nil {
			err = also(err, settled)
		}
	}
	return tok, err
}

// A runner is one call of Run, TryRun or AcquireWait.
type runner struct {
	*RunOptions
	lease  lease.Lease
	log    logqueue.Queue
	failed error // of the last term
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

// term is one period of holding.
func (r *runner) term(ctx context.Context, tok lease.Token, f func(context.Context, lease.Token) error) (err error) {
	held, cancel := lease.WhileHeld(ctx, r.lease)
	r.info("lease: term began", tok)
	defer func() { // even if f panics or ends its goroutine
		over := held.Err() != nil
		cancel() // a Session notices now a loss that nothing has noticed yet
		cause, lost := context.Cause(held), (*lease.LostError)(nil)
		switch {
		case !over && !errors.As(cause, &lost): // f has returned, and its context had not ended
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), cause): // the caller ended it
		case errors.Is(cause, lease.ErrReleased) && !errors.As(cause, &lost): // f gave the lease up
		case !errors.Is(err, cause):
			err = also(err, cause)
		}
		err = also(err, r.bounded(ctx, r.lease.Release))
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

// bounded calls f under a context that lasts for the ReleaseTimeout, whatever becomes of ctx.
func (r *runner) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := timing.WithTimeout(context.WithoutCancel(ctx), r.Clock, r.ReleaseTimeout)
	defer cancel()
	return f(ctx)
}

// settle releases what a try of unknown outcome may be granted. A Session does that without giving
// up what others hold or try with it.
func (r *runner) settle(ctx context.Context) error {
	if l, ok := r.lease.(interface{ Settle(context.Context) error }); ok { // or what embeds a Session
		return l.Settle(ctx)
	}
	return r.lease.Release(ctx)
}

// contend asks until the lease is held. If it fails, and a try of unknown outcome may yet be
// granted, that must be settled.
func (r *runner) contend(ctx context.Context) (tok lease.Token, unknown bool, err error) {
	c := contention{interval: r.AcquireInterval}
	for {
		over := ctx.Err() // then the lease makes no request
		tok, ok, err := lease.AcquireWithToken(ctx, r.lease)
		ended := ctx.Err()
		switch {
		case ok:
			return tok, false, nil
		case over != nil && errors.Is(err, over):
		case ended != nil && errors.Is(err, ended):
			// The lease undoes by itself what ctx ended; but an earlier try may be in doubt. This
			// sends, and does not wait, since ctx is done.
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

// waitForTurn waits until it may be worth trying again. It returns an error if it never will be.
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

// pause waits for d, shortened at random by up to half. It returns the context's error.
func (r *runner) pause(ctx context.Context, d time.Duration) error {
	return timing.Sleep(ctx, r.Clock, dice.Dice{Reader: &r.Rand}.Shorten(d, 0.5))
}

// A contention is what came of the tries to acquire so far.
type contention struct {
	interval time.Duration
	last     error         // of the last try
	since    time.Time     // since when that has come unchanged
	pause    time.Duration // until the next try
}

const (
	longestPause  = 10 * time.Second // between tries that fail, unless AcquireInterval is longer
	permanentTime = 30 * time.Second // for which a permanent error must have come unchanged
)

// tried takes the error of a try that was not granted: nil if the lease is locked. It reports
// whether there is no use in trying again.
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

// stopped is the error of a contention that the caller has stopped.
func (c *contention) stopped(ctx context.Context) error {
	if c.last == nil {
		return stopped(ctx)
	}
	return fmt.Errorf("%w; the last try to acquire: %w", stopped(ctx), c.last)
}

// stopped is one error that matches both the error and the cause of a context.
func stopped(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// also is errors.Join on one line.
func also(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}

// hopeless reports whether an error will be the same however often the call is repeated.
func hopeless(err error) bool {
	switch code := lease.CodeOf(err); code {
	case 0:
		return errors.Is(err, errors.ErrUnsupported)
	case lease.ErrConflict, lease.ErrCorrupt, lease.ErrReleased, lease.ErrExpired:
		return false // ErrReleased: superseded by a Release; ErrExpired: granted too late
	default:
		return !code.Refusal() || code == lease.ErrEpochLimit
	}
}
