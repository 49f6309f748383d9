package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/jitter"
)

// contend calls tryUntilGranted, and then the hook [Trace].Contended if the Lease is a Session.
func (r *runner) contend(ctx context.Context) (tok lease.Token, unknown bool, err error) {
	c, began := contention{interval: r.AcquireInterval, refusal: r.refusal()}, r.clock.Now()
	tok, unknown, err = r.tryUntilGranted(ctx, &c)
	r.reportContention(ContendInfo{Token: tok, Err: err, Took: r.clock.Now().Sub(began), Attempts: c.attempts})
	return tok, unknown, err
}

// reportContention adds the name to info and calls the hook, if the Lease is a Session.
func (r *runner) reportContention(info ContendInfo) {
	if s := r.session; s != nil && s.o.Trace != nil {
		info.Name = r.lease.Name()
		callHook(s.o.Trace.Contended, info)
	}
}

// tryUntilGranted tries to acquire the lease until an attempt is granted. If unknown is true, an
// attempt may have been granted, or may still be, and the caller must call ReleaseUncertain.
func (r *runner) tryUntilGranted(ctx context.Context, c *contention) (tok lease.Token, unknown bool, err error) {
	for {
		c.attempts++
		over := ctx.Err() // if ctx is done already, the Lease sends no request
		tok, ok, err := r.lease.AcquireWithToken(ctx)
		ended := ctx.Err()
		switch {
		case ok:
			r.reportAttempt(c, nil)
			return tok, false, nil
		case over != nil && errors.Is(err, over): // no request was sent
		case ended != nil && errors.Is(err, ended):
			// The Lease itself undoes the attempt that ctx has ended. If the outcome of an earlier attempt is
			// unknown, ReleaseUncertain sends a release, but does not wait for the answer, because ctx is done.
			_ = r.lease.ReleaseUncertain(ctx)
			unknown = false
		case err != nil && mayBeGranted(err):
			unknown = true
		}
		if ended == nil && c.noteAttempt(r.clock.Now(), err) {
			return "", unknown, err
		}
		if ended == nil {
			r.reportAttempt(c, err)
		}
		if ended == nil && err == nil && !c.logged {
			c.logged = true
			var holder any
			if r.session != nil && r.session.lastHolder() != "" {
				holder = r.session.lastHolder()
			}
			r.record(slog.LevelInfo, "lease: waiting for another holder", "holder", holder)
		}
		if err := r.waitForTurn(ctx, c, err == nil); err != nil {
			return "", unknown, err
		}
		if ctx.Err() != nil {
			return "", unknown, c.stopped(ctx)
		}
	}
}

// refusal returns the error of an attempt that was refused because the lease is locked, with the name
// of the lease if the Lease has a method Name.
func (r *runner) refusal() error {
	if name := r.lease.Name(); name != "" {
		return &lease.OpError{Op: "acquire", Name: name, Err: lease.ErrHeldByOther}
	}
	return lease.ErrHeldByOther
}

// reportAttempt logs an attempt that has failed with err, or that the authority has answered, with the
// records of a Session. A Session logs them itself.
func (r *runner) reportAttempt(c *contention, err error) {
	if r.session != nil {
		return
	}
	switch {
	case err == nil && c.failures > 0:
		r.record(slog.LevelInfo, "lease: the authority answers again", "failures", c.failures)
		c.failures = 0
	case err != nil:
		if c.failures++; c.failures&(c.failures-1) == 0 { // a power of two
			r.record(slog.LevelWarn, "lease: acquire failed", "failures", c.failures, "err", err)
		}
	}
}

// waitForTurn waits until another attempt may succeed. It returns an error if none can ever succeed.
func (r *runner) waitForTurn(ctx context.Context, c *contention, locked bool) error {
	if locked {
		spreads := 0
		spread := func() time.Duration {
			spreads++
			return r.shorten(r.WakeJitter, 1)
		}
		var err error
		if r.session != nil {
			err = r.session.waitSpread(ctx, spread)
		} else {
			err = r.lease.Wait(ctx)
		}
		switch {
		case err == nil:
			if spreads == 0 { // Wait returned at once, or without a pause of its own
				_ = clock.Sleep(ctx, r.clock, spread())
			}
			return nil
		case hopeless(err):
			return err
		}
	}
	_ = r.pause(ctx, c.pause)
	return nil
}

// pause waits for d, shortened at random by up to half, or until ctx ends, and then returns its error.
func (r *runner) pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, r.clock, r.shorten(d, 0.5))
}

// shorten shortens a duration at random, by at most the given part. It draws from the Rand of the Session.
func (r *runner) shorten(d time.Duration, part float64) time.Duration {
	if r.session == nil {
		return jitter.Source{Reader: &rand.Reader}.Shorten(d, part)
	}
	return r.session.shorten(d, part)
}

// A contention is the history of the attempts to acquire the lease.
type contention struct {
	interval time.Duration
	refusal  error         // error of an attempt that was refused because the lease is locked
	last     error         // error of the last attempt
	failed   bool          // whether the last attempt failed, and was not just refused
	since    time.Time     // when the first of the last attempts that all failed with a permanent error failed; zero if there is none
	pause    time.Duration // until the next attempt
	attempts int           // calls of Acquire
	failures int           // attempts in a row that failed with any error
	logged   bool          // the Logger has the record that Run waits for another holder
}

const (
	longestPause  = 10 * time.Second // limit for the pause after a failed attempt, unless AcquireInterval is longer
	permanentTime = 30 * time.Second // if all attempts have failed with permanent errors for this long, Run returns the last error
)

// noteAttempt records the error of an attempt that was not granted, nil if it was refused because the
// lease is locked. It reports whether every later attempt would fail too.
func (c *contention) noteAttempt(now time.Time, err error) (over bool) {
	switch {
	case err == nil:
		c.last, c.failed, c.since, c.pause = c.refusal, false, time.Time{}, c.interval
		return false
	case c.failed:
		c.pause = min(2*c.pause, max(longestPause, c.interval))
	default:
		c.pause = c.interval
	}
	c.last, c.failed = err, true
	switch permanent := errors.As(err, new(*lease.PermanentError)); {
	case !permanent:
		c.since = time.Time{}
	case c.since.IsZero():
		c.since = now
	default:
		return hopeless(err) || now.Sub(c.since) >= permanentTime
	}
	return hopeless(err)
}

// stopped returns the error of a contention that has ended because ctx is done. It matches ctx.Err(),
// context.Cause(ctx), and the error of the last attempt if there was one.
func (c *contention) stopped(ctx context.Context) error {
	if c.last == nil {
		return stopped(ctx)
	}
	return fmt.Errorf("%w; the last attempt: %w", stopped(ctx), c.last)
}

// mayBeGranted reports whether an attempt that failed with err may have been granted. After ErrExpired
// it was, but too late.
func mayBeGranted(err error) bool {
	return !holder.ProvesNoChange(err) || lease.CodeOf(err) == lease.ErrExpired
}

// hopeless reports whether it is useless to retry a call that has returned err.
func hopeless(err error) bool {
	switch code := lease.CodeOf(err); code {
	case 0, lease.ErrUnsent:
		return errors.Is(err, errors.ErrUnsupported)
	case lease.ErrConflict, lease.ErrCorrupt, lease.ErrReleased, lease.ErrExpired:
		return false // ErrReleased: a Release has ended the call. ErrExpired: the grant came too late.
	default:
		return !code.Refusal() || code == lease.ErrEpochLimit
	}
}
