package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// If an error shows that no Acquire can ever be granted, Run returns the error. After any other
// error, Run tries again, at a jittered interval. SPEC N4.
func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		err      error
		hopeless bool
	}{
		{errNet, false}, {context.DeadlineExceeded, false}, {errors.ErrUnsupported, true},
		{errors.Join(lease.ErrUnsent, errNet), false}, {errors.Join(lease.ErrUnsent, errors.ErrUnsupported), true},
		{lease.ErrConflict, false}, {lease.ErrCorrupt, false}, {lease.ErrExpired, false}, {lease.ErrReleased, false}, {&lease.LostError{Reason: lease.ErrStopWindow}, false},
		{lease.ErrIDMismatch, false}, {lease.ErrNotPresent, false}, {lease.ErrEpochLimit, true},
		{lease.ErrDuration, true}, {lease.ErrName, true}, {lease.ErrClosed, true}, {lease.ErrOption, true},
	} {
		for _, waiter := range []bool{false, true} { // after an error, Run does not call the method Wait of a Waiter
			synctest.Test(t, func(t *testing.T) {
				p := &plain{err: fmt.Errorf("wrapped: %w", c.err)}
				l := lease.Lease(p)
				if waiter {
					l = impatient{p, nil}
				}
				began := time.Now()
				time.AfterFunc(time.Minute, func() { p.set(true, nil) })
				tok, err := session.AcquireWait(context.Background(), l, nil)
				switch calls := p.calls.Load(); {
				case c.hopeless && (!errors.Is(err, c.err) || calls != 1):
					t.Errorf("%v: acquire: %v, after %d calls", c.err, err, calls)
				case !c.hopeless && (err != nil || tok != "" || !p.CheckAlive()):
					t.Errorf("%v: acquire: %q, %v", c.err, tok, err)
				case !c.hopeless && (time.Since(began) > 71*time.Second || calls < 9 || calls > 30):
					t.Errorf("%v: acquire after %v and %d calls", c.err, time.Since(began), calls)
				}
			})
		}
	}
}

// plain is a Lease that is not a Waiter and has no tokens.
type plain struct {
	mu    sync.Mutex
	ok    bool
	err   error
	next  []plainAnswer // answers before ok and err
	held  bool
	calls atomic.Int32
	stops atomic.Int32 // the number of handlers that were unregistered
}

type plainAnswer struct {
	ok  bool
	err error
}

func (p *plain) set(ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ok, p.err = ok, err
}

func (p *plain) Acquire(context.Context) (bool, error) {
	p.calls.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := plainAnswer{p.ok, p.err}
	if len(p.next) > 0 {
		a, p.next = p.next[0], p.next[1:]
	}
	p.held = a.ok
	return a.ok, a.err
}

func (p *plain) Release(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	return nil
}

func (p *plain) CheckAlive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

func (p *plain) OnLost(func(error)) func() bool { return func() bool { return p.stops.Add(1) == 1 } }

// Run works with any Lease. SPEC N1.
func TestRunOfAPlainLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &plain{}
		time.AfterFunc(10*time.Second, func() { l.set(true, nil) })
		err := session.Run(context.Background(), l, func(ctx context.Context, tok lease.Token) error {
			if !l.CheckAlive() || tok != "" || ctx.Err() != nil {
				t.Errorf("token %q; %v", tok, ctx.Err())
			}
			return errWork
		}, nil)
		if err != errWork || l.CheckAlive() || l.stops.Load() != 1 {
			t.Errorf("run: %v; the handler was unregistered %d times", err, l.stops.Load())
		}
		if calls := l.calls.Load(); calls < 11 || calls > 21 { // the interval is 1 s, shortened by up to half
			t.Errorf("asked %d times", calls)
		}
	})
}

// impatient is a Waiter whose Wait returns at once, with the error err.
type impatient struct {
	*plain
	err error
}

func (w impatient) Wait(context.Context) error { return w.err }

// If Wait fails, or returns although the lease is not free, Run pauses before its next attempt.
// SPEC N4.
func TestRunOfAWaiterThatFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		most int32
	}{{errNet, 21}, {lease.ErrClosed, 1}, {nil, 400}} { // WakeJitter is 100 ms, and the average pause is half of it
		synctest.Test(t, func(t *testing.T) {
			l := impatient{&plain{}, c.err}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if _, err := session.AcquireWait(ctx, l, nil); err == nil {
				t.Error("acquired")
			}
			if calls := l.calls.Load(); calls > c.most {
				t.Errorf("%v: asked %d times", c.err, calls)
			}
		})
	}
}

// If RunOptions are out of range, the error names the field, its value and the bound. SPEC H22.
func TestRunOptions(t *testing.T) {
	for _, c := range []struct {
		o                   session.RunOptions
		field, value, bound string
	}{
		{session.RunOptions{AcquireInterval: -time.Second, WakeJitter: 1}, "AcquireInterval", "-1s", "must not be negative"},
		{session.RunOptions{WakeJitter: -time.Second}, "WakeJitter", "-1s", "must not be negative"},
		{session.RunOptions{ReleaseTimeout: -time.Second}, "ReleaseTimeout", "-1s", "must not be negative"},
		{session.RunOptions{AcquireInterval: 10}, "AcquireInterval", "10ns", "must be at least 1ms; did you forget the unit?"},
		{session.RunOptions{ReleaseTimeout: 30}, "ReleaseTimeout", "30ns", "must be at least 1ms; did you forget the unit?"},
	} {
		l := &plain{ok: true}
		_, err := session.AcquireWait(context.Background(), l, &c.o)
		run := session.Run(context.Background(), l, func(context.Context, lease.Token) error { return nil }, &c.o)
		for _, err := range []error{err, run} {
			var bad *lease.FieldError
			if !errors.As(err, &bad) || bad.Field != "RunOptions."+c.field || bad.Value != c.value || bad.Bound != c.bound {
				t.Errorf("%s %s: %v", c.field, c.value, err)
			}
			if n := l.calls.Load(); n != 0 {
				t.Errorf("%s %s: %d calls", c.field, c.value, n)
			}
		}
	}
	err := session.Run(context.Background(), &plain{ok: true}, func(context.Context, lease.Token) error { return nil }, &session.RunOptions{AcquireInterval: 5, ReleaseTimeout: 3})
	for _, field := range []string{"RunOptions.AcquireInterval", "RunOptions.ReleaseTimeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}

var errTable = errors.New("no such table")

// The fault failWith fails every request at once with an error.
func failWith(err error) fault {
	return func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
		return lease.Result{}, err
	}
}

func idle(context.Context, lease.Token) error { return nil }

// If attempts fail with permanent errors for 30 s, Run and AcquireWait return the last one, even if
// the text of the error is different each time. They never return
// because of an error that is not marked as permanent.
func TestPermanentErrorEndsContending(t *testing.T) {
	for name, contend := range contenders {
		for _, c := range []struct {
			err       error
			permanent bool
		}{
			{lease.Permanent(errTable), true},
			{fmt.Errorf("load: %w", lease.Permanent(errTable)), true},
			{errTable, false},
			{lease.Permanent(errTable), false}, // every third error is not marked
		} {
			mixed := !c.permanent && c.err != errTable
			t.Run(fmt.Sprint(name, " ", c.permanent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, nil)
					n.keep(lease.ActionAcquire, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
						err, i := c.err, n.count(lease.ActionAcquire)
						if mixed && i%3 == 0 {
							err = errTable
						}
						return failWith(fmt.Errorf("request %d: %w", i, err))(ctx, send)
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began := time.Now()
					err := contend(ctx, h, nil)
					took := time.Since(began)
					if !errors.Is(err, errTable) || errors.Is(err, context.DeadlineExceeded) == c.permanent {
						t.Errorf("%v", err)
					}
					if c.permanent && (took < 30*time.Second || took > 40*time.Second) {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// The functions in contenders are the two ways to contend for a lease.
var contenders = map[string]func(context.Context, lease.Lease, *session.RunOptions) error{
	"Run": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		return session.Run(ctx, l, func(context.Context, lease.Token) error { panic("called") }, o)
	},
	"Acquire": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		_, err := session.AcquireWait(ctx, l, o)
		return err
	},
}

// One attempt has an unknown outcome, and an error of the next attempt shows that no attempt can
// ever be granted. The contender releases the lease, and returns the error of the release if the
// release fails. SPEC N3.
func TestHopelessTellsWhatItCouldNotRelease(t *testing.T) {
	for how, contend := range contenders {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.meet(lease.ActionAcquire, failAnswer, refuse(lease.ErrDuration, lease.Result{}))
			n.meet(lease.ActionRelease, refuse(lease.ErrConflict, lease.Result{}))
			err := contend(t.Context(), h, nil)
			if !errors.Is(err, lease.ErrDuration) || !errors.Is(err, lease.ErrConflict) {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}
