package session

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/holder"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/internal/retry"
)

func (r *runner) contend(ctx context.Context) (tok lease.Token, unknown bool, err error) {
	c, began := contention{interval: r.AcquireInterval, refusal: r.refusal()}, r.clock.Now()
	tok, unknown, err = r.tryUntilGranted(ctx, &c)
	r.reportContention(ContendInfo{Token: tok, Err: err, Took: r.clock.Now().Sub(began), Attempts: c.attempts})
	return tok, unknown, err
}

// reportContention calls the hook [Trace].Contended, if the Lease is a Session that has this hook.
func (r *runner) reportContention(info ContendInfo) {
	if s := r.session; s != nil && s.o.Trace != nil && s.o.Trace.Contended != nil {
		info.Name = r.lease.Name()
		s.o.Trace.Contended(info)
	}
}

// tryUntilGranted tries to acquire the lease until an attempt is granted. The second result is true if the
// outcome is unknown: the authority may have granted the lease, or may still grant it. In this case, the
// caller must call ReleaseUncertain.
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
			// The Lease itself releases what this attempt may have acquired. ReleaseUncertain does the same
			// for earlier attempts with an unknown outcome. It does not wait for the answer, because ctx is
			// done.
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
			return "", unknown, retry.Stopped(ctx, c.Last)
		}
	}
}

// refusal returns the error of an attempt that was refused because the lease is locked.
func (r *runner) refusal() error {
	if name := r.lease.Name(); name != "" {
		return &lease.OpError{Op: "acquire", Name: name, Err: lease.ErrHeldByOther}
	}
	return lease.ErrHeldByOther
}

// reportAttempt logs failed attempts, and the first success after them. A Session logs its attempts itself.
func (r *runner) reportAttempt(c *contention, err error) {
	if r.session != nil {
		return
	}
	switch {
	case err == nil && c.failures > 0:
		r.record(slog.LevelInfo, "lease: the authority answers again", "failures", c.failures)
		c.failures = 0
	case err != nil:
		if c.failures++; c.failures&(c.failures-1) == 0 { // log only failure number 1, 2, 4, 8 and so on
			r.record(slog.LevelWarn, "lease: acquire failed", "failures", c.failures, "err", err)
		}
	}
}

// waitForTurn waits until another attempt may succeed, or returns an error if no attempt ever can.
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
		case retry.Hopeless(err):
			return err
		}
	}
	_ = r.pause(ctx, c.pause)
	return nil
}

// pause waits for d, shortened at random by up to half. If ctx ends first, pause returns the error of ctx.
func (r *runner) pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, r.clock, r.shorten(d, 0.5))
}

// shorten shortens a duration at random, by at most the given fraction. The random numbers come from the Rand
// of the Session, if there is one.
func (r *runner) shorten(d time.Duration, part float64) time.Duration {
	if r.session == nil {
		return jitter.Source{Reader: &rand.Reader}.Shorten(d, part)
	}
	return r.session.shorten(d, part)
}

// A contention records what the attempts to acquire the lease have returned, and how long to wait before the
// next attempt.
type contention struct {
	retry.Series
	interval time.Duration
	refusal  error         // the error of an attempt that was refused because the lease is locked
	failed   bool          // whether the last attempt failed for another reason
	pause    time.Duration // the time until the next attempt
	attempts int           // the number of calls of Acquire
	failures int           // the number of failed attempts in a row
	logged   bool          // whether Run has logged that it waits for another holder
}

// longestPause is the longest pause after a failed attempt, unless AcquireInterval is longer.
const longestPause = 10 * time.Second

// noteAttempt records an attempt that was not granted, and reports whether it is useless to try again. If the
// attempt was refused because the lease is locked, err is nil.
func (c *contention) noteAttempt(now time.Time, err error) (over bool) {
	switch {
	case err == nil:
		err, c.failed, c.pause = c.refusal, false, c.interval
	case c.failed:
		c.pause = min(2*c.pause, max(longestPause, c.interval))
	default:
		c.failed, c.pause = true, c.interval
	}
	return c.Over(now, err)
}

// mayBeGranted reports whether an attempt that failed with err may have been granted. ErrExpired means that
// the attempt was granted, but too late.
func mayBeGranted(err error) bool {
	return !holder.ProvesNoChange(err) || lease.CodeOf(err) == lease.ErrExpired
}
