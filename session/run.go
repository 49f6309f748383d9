package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fencedlease/lease"
)

// RunOptions configure [Run] and [AcquireWait]. A nil *RunOptions and the zero value of each
// field mean the defaults.
type RunOptions struct {
	// AcquireInterval is the time from one try to the next, shortened at random by up to half, where
	// the Lease cannot Wait or the last try failed. Default: 1 s.
	AcquireInterval time.Duration

	// WakeJitter is the window over which contenders that were woken together are spread at
	// random. Default: AcquireInterval/10.
	WakeJitter time.Duration

	// ReleaseTimeout bounds the Release after the function has returned, and after a try whose
	// outcome is unknown when Run ends, if the Lease keeps to its context. Default: 10 s.
	ReleaseTimeout time.Duration

	// Again decides after every term, the time from a grant to its release, whether to contend
	// again, an AcquireInterval later, so that others get their turn; err is what Run would return.
	// It is not asked once the context is done. Default: never.
	Again func(err error) bool

	Clock lease.Clock // default: package time
	Rand  io.Reader   // source of the jitter, read by this Run only; default: crypto/rand
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
		c.Clock = system{}
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
// context that ends when the lease is gone ([context.Cause] tells why), lets the lease be
// renewed until f has really returned, and releases it. Then it returns, or contends again
// if Again says so. It works with any [lease.Lease]; the token is empty if that issues none.
//
// A context that ends while Run contends ends Run, with its error. One that ends while f
// runs ends f's context; f should then stop, and is waited for. The error is f's own, joined
// with the loss if the lease was lost meanwhile ([*lease.LostError]; what another kind of Lease
// has told its OnLost handlers by then, or [lease.ErrLost]) and with the error of the release
// if there was one. If f panics the lease is released and the panic goes on.
//
// While contending, an error that may pass is no reason to stop: it is tried again, and the
// last one, or [lease.ErrHeldByOther], is told with the error of a context that ends meanwhile; a try
// that may yet be granted is released. An error that says that no
// Acquire can ever be granted is returned.
//
// The context of f ends with the lease, also when f itself gives that up. A HandOver or a
// Release in f may be called with it all the same; a Close needs one that does not end, as
// context.WithoutCancel returns. Two Runs with the same Lease are one holder, and the first to
// end releases it: use a Lease for each.
func Run(ctx context.Context, l lease.Lease, f func(ctx context.Context, tok lease.Token) error, o *RunOptions) error {
	set, err := o.complete()
	switch {
	case err != nil:
		return err
	case l == nil:
		return missing("Run.l")
	case f == nil:
		return missing("Run.f")
	}
	for {
		tok, unsettled, err := set.contend(ctx, l)
		if unsettled {
			err = errors.Join(err, set.release(ctx, l, releaseUnknown))
		}
		if err != nil {
			return err
		}
		err = set.term(ctx, l, tok, f)
		if ctx.Err() != nil || set.Again == nil || !set.Again(err) {
			return err
		}
		if err := set.pause(ctx); err != nil {
			return err
		}
	}
}

// AcquireWait is an Acquire that waits: it contends until the lease is held, and returns its
// fencing token. It fails as Run does while it contends. A try that may yet be granted is then
// released; with a Lease that is no [Session] that ends what others hold or try with it too.
func AcquireWait(ctx context.Context, l lease.Lease, o *RunOptions) (lease.Token, error) {
	set, err := o.complete()
	switch {
	case err != nil:
		return "", err
	case l == nil:
		return "", missing("AcquireWait.l")
	}
	tok, unsettled, err := set.contend(ctx, l)
	if unsettled {
		released := releaseUnknown(l, ctx) // which ctx, if it is done, does not keep from being sent
		if ctx.Err() == nil {
			err = errors.Join(err, released)
		}
	}
	return tok, err
}

// term is one period of holding.
func (o *RunOptions) term(ctx context.Context, l lease.Lease, tok lease.Token, f func(context.Context, lease.Token) error) (err error) {
	held, cancel := lease.WhileHeld(ctx, l)
	defer func() { // also if f panics or ends its goroutine
		told := held.Err() != nil
		cancel() // by which a Session notices a loss that nothing has told yet
		cause, lost := context.Cause(held), (*lease.LostError)(nil)
		switch {
		case !told && !errors.As(cause, &lost), errors.Is(context.Cause(ctx), cause), errors.Is(cause, lease.ErrReleased):
			// Not over, or not by a loss: ctx ended, or f released the lease itself.
		case !errors.Is(err, cause):
			err = errors.Join(err, cause)
		}
		if released := o.release(ctx, l, lease.Lease.Release); released != nil {
			err = errors.Join(err, released)
		}
	}()
	if held.Err() == nil {
		err = f(held, tok)
	} else if err = ctx.Err(); err == nil {
		err = context.Cause(held)
	}
	return err
}

// release has a time of its own, whatever becomes of ctx.
func (o *RunOptions) release(ctx context.Context, l lease.Lease, f func(lease.Lease, context.Context) error) error {
	bounded, done := withTimeout(context.WithoutCancel(ctx), o.Clock, o.ReleaseTimeout)
	defer done()
	return f(l, bounded)
}

// releaseUnknown releases what a try of unknown outcome may be granted yet. A Session can do that
// without giving up what others have or try with it.
func releaseUnknown(l lease.Lease, ctx context.Context) error {
	if s, ok := l.(interface{ releaseUnknown(context.Context) error }); ok { // or what embeds one
		return s.releaseUnknown(ctx)
	}
	return l.Release(ctx)
}

// contend asks until the lease is held. If it fails and is unsettled, a try may yet be granted,
// and must be released.
func (o *RunOptions) contend(ctx context.Context, l lease.Lease) (tok lease.Token, unsettled bool, err error) {
	var failed error // of the last try, if it was not ctx that ended it
	for {
		over := ctx.Err() // then l asks nobody
		tok, ok, err := lease.AcquireWithToken(ctx, l)
		ended := ctx.Err()
		switch {
		case over != nil && errors.Is(err, over):
		case ended != nil && errors.Is(err, ended):
			// What ctx ended, l undoes itself; but the try may have failed just before. This waits for
			// nothing, since ctx is done.
			_ = releaseUnknown(l, ctx)
			unsettled = false
		case err != nil && !certain(err):
			unsettled = true
		}
		switch {
		case ok:
			return tok, false, nil
		case err == nil:
			failed = lease.ErrHeldByOther
		case ctx.Err() == nil:
			failed = err
		}
		waiter, wakes := l.(lease.Waiter)
		if err == nil && wakes {
			err = waiter.Wait(ctx)
		}
		switch {
		case hopeless(err):
			return "", unsettled, err
		case err == nil && wakes:
			err = sleep(ctx, o.Clock, time.Duration(random(o.Rand)*float64(o.WakeJitter)))
		default:
			err = o.pause(ctx)
		}
		switch {
		case err != nil && failed != nil:
			return "", unsettled, fmt.Errorf("%w; the last try to acquire: %w", err, failed)
		case err != nil:
			return "", unsettled, err
		}
	}
}

// pause waits for an AcquireInterval, jittered.
func (o *RunOptions) pause(ctx context.Context) error {
	return sleep(ctx, o.Clock, o.AcquireInterval-time.Duration(random(o.Rand)*float64(o.AcquireInterval)/2))
}

// hopeless reports whether an error will be the same however often the call is repeated.
func hopeless(err error) bool {
	switch code := lease.CodeOf(err); code {
	case 0:
		return errors.Is(err, errors.ErrUnsupported)
	case lease.ErrConflict, lease.ErrCorrupt, lease.ErrReleased, lease.ErrExpired, lease.ErrLost, lease.ErrStopWindow, lease.ErrTakenOver:
		return false // ErrReleased: superseded by a Release; ErrExpired: granted too late; the rest ended an earlier holding
	default:
		return !code.Refusal() || code == lease.ErrEpochLimit
	}
}
