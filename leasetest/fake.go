package leasetest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/cancel"
	"github.com/fencedlease/lease/internal/handlers"
)

// A Fake is a [lease.Lease] for unit tests of code that uses a lease. It has no authority.
// [Fake.Next] and [Fake.NextAfter] set the result of the next Acquire. [Fake.Lose] loses the lease,
// and [Fake.Break] breaks it. [Fake.Calls] returns the method calls that the code under test has
// made.
//
// The zero Fake is ready to use. Its lease is free, and every Acquire is granted. The lease does
// not expire by itself. A Fake implements [lease.TokenAcquirer] and [lease.Waiter]. Like a
// session.Session, a Fake also has the methods WhileHeld and OnBreaking. [TestLease] checks that a
// Fake conforms to [lease.Lease].
//
// A Fake does not have to be closed. A Fake starts one goroutine for each handler that it calls,
// and no other goroutines. A Fake can be used in a [testing/synctest] bubble if it was made in that
// bubble. The methods of a Fake are safe for concurrent use by multiple goroutines, and may be
// called inside handlers. A Fake must not be copied.
type Fake struct {
	// Name is the name of the lease in a [*lease.LostError]. It may be empty.
	Name string

	onLost     handlers.Set[error]
	onBreaking handlers.Set[time.Time]
	contexts   cancel.Set // the contexts that WhileHeld returned

	made  sync.Once
	lease *fakeLease // set by contest

	// Guarded by the mutex of the fakeLease.
	answers  []fakeAnswer
	calls    []string
	released chan struct{} // closed by Release; nil if no call waits for a Release
}

// A fakeLease is the lease that a Fake and its rivals contend for.
type fakeLease struct {
	mu     sync.Mutex
	epoch  uint64
	holder *Fake         // nil if the lease is free
	end    time.Time     // the end of a break; zero if the lease is not breaking
	timer  *time.Timer   // fires at the end of the break
	freed  chan struct{} // closed when the lease becomes free; nil if no call waits for that
	after  []func()      // functions to call once mu is unlocked
}

// A fakeAnswer is the result of one Acquire.
type fakeAnswer struct {
	delay time.Duration
	ok    bool
	err   error
}

// Next sets the result of the next Acquire. If ok is true and err is nil, the Acquire is granted.
// If ok is false and err is nil, another holder has the lease. If err is not nil, the Acquire
// fails, and its outcome is unknown.
//
// Several calls of Next set the results of several Acquires, in the same order. If no result is
// left, an Acquire is granted. If the Fake already holds the lease, Acquire returns true, and the
// next result is kept for a later Acquire. While a rival holds the lease, Acquire is never granted.
//
// Next panics if ok is true and err is not nil, because Acquire never returns true with an error.
func (f *Fake) Next(ok bool, err error) { f.NextAfter(0, ok, err) }

// NextAfter is like Next, but the Acquire waits for d before it returns. If the context of the
// Acquire is done during that wait, the Acquire returns the error of the context. If Release is
// called during that wait, the Acquire returns [lease.ErrReleased].
func (f *Fake) NextAfter(d time.Duration, ok bool, err error) {
	must(!ok || err == nil, "Fake.Next: err is %q, and must be nil if ok is true", err)
	must(d >= 0, "Fake.NextAfter: d is %v, and must not be negative", d)
	f.update("", func(*fakeLease) { f.answers = append(f.answers, fakeAnswer{d, ok, err}) })
}

// Lose ends the lease at once with the given reason, and reports whether the lease was held.
// Handlers of OnLost are called with a [*lease.LostError]. Lose also cancels the contexts that
// WhileHeld returned, with that error as their cause.
func (f *Fake) Lose(reason lease.Code) (held bool) {
	f.update("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.lose(reason)
		}
	})
	return held
}

// EndWork cancels the contexts that WhileHeld returned, but the lease stays held. A session.Session
// also cancels these contexts if its lease was not renewed and will expire soon. The cause of the
// canceled contexts is a [*lease.LostError] with the reason [lease.ErrStopWindow]. EndWork reports
// whether the lease was held.
func (f *Fake) EndWork() (held bool) {
	f.update("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.after = append(l.after, f.contexts.End(l.lost(lease.ErrStopWindow)))
		}
	})
	return held
}

// Break breaks the lease as an operator would, and reports whether the lease was held. The lease
// stays held for the given period, and is then lost with the reason [lease.ErrBroken]. If the
// period is zero, the lease is lost at once. If the period is positive, Break calls the handlers of
// OnBreaking with the end of the period. A second Break can only shorten the period.
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
			l.stopTimer()
			l.end = end
			l.timer = time.AfterFunc(period, func() { f.update("", func(*fakeLease) {}) })
			l.callLater(f.onBreaking.Calls(end, panicked))
		}
	})
	return held
}

// Rival returns a Fake for another holder of the same lease. While one Fake holds the lease, no
// other Fake of that lease can acquire it.
func (f *Fake) Rival() *Fake { return &Fake{Name: f.Name, lease: f.contest()} }

// Calls returns the names of the methods that were called so far, such as "Acquire" or "Release",
// in the order of the calls. Calls lists the methods of [lease.Lease] and [lease.Waiter], and those
// that a Fake shares with a session.Session. A call of AcquireWithToken is listed as "Acquire".
// Consecutive calls of CheckAlive are listed once.
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
	err = ctx.Err()
	f.update("Acquire", func(l *fakeLease) {
		if ok = err == nil && l.holder == f; ok {
			tok = lease.TokenOf(l.epoch)
		} else if answer = (fakeAnswer{ok: true}); err == nil && len(f.answers) > 0 {
			answer, f.answers = f.answers[0], f.answers[1:]
		}
		released = waitFor(&f.released)
	})
	if ok || err != nil {
		return tok, ok, err
	}
	if answer.delay > 0 {
		timer := time.NewTimer(answer.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return "", false, ctx.Err()
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
			tok, ok = lease.TokenOf(l.epoch), true
		}
	})
	return tok, ok, err
}

// Release implements [lease.Lease].
func (f *Fake) Release(context.Context) error {
	f.update("Release", func(l *fakeLease) {
		signal(&f.released)
		if l.holder == f {
			l.setFree(lease.ErrReleased)
		}
	})
	return nil
}

// CheckAlive implements [lease.Lease].
func (f *Fake) CheckAlive() (held bool) {
	f.update("CheckAlive", func(l *fakeLease) { held = l.holder == f })
	return held
}

// OnLost implements [lease.Lease].
func (f *Fake) OnLost(handler func(error)) (stop func() bool) {
	f.update("OnLost", func(*fakeLease) {})
	return f.onLost.Add(handler)
}

// OnBreaking registers a handler that is called when the lease is broken with a period. The
// argument until is the end of that period. If a second break shortens the period, the handler is
// called again.
func (f *Fake) OnBreaking(handler func(until time.Time)) (stop func() bool) {
	f.update("OnBreaking", func(*fakeLease) {})
	return f.onBreaking.Add(handler)
}

// WhileHeld returns a context that is canceled when the lease is lost or released. If the lease is
// not held, the context is canceled at once. See [lease.WhileHeld].
func (f *Fake) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	c, held := cancel.New(ctx), false
	f.update("WhileHeld", func(l *fakeLease) {
		if held = l.holder == f; held {
			f.contexts.Add(c)
		}
	})
	if !held {
		c.End(lease.ErrNotHeld)
	}
	return c.Context, func() {
		f.contexts.Remove(c)
		c.End(context.Canceled)
	}
}

// Wait implements [lease.Waiter]. It returns nil as soon as no rival holds the lease, or when
// Release is called.
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
		select {
		case <-ctx.Done():
		case <-freed:
		case <-released:
			return nil
		}
		name = ""
	}
	return ctx.Err()
}

// contest returns the lease that f and its rivals share. The first call creates the lease if f is
// not a rival.
func (f *Fake) contest() *fakeLease {
	f.made.Do(func() {
		if f.lease == nil {
			f.lease = new(fakeLease)
		}
	})
	return f.lease
}

// update locks the mutex of the lease and calls the function change. If the name of a call is not
// empty, update also records that call.
func (f *Fake) update(call string, change func(*fakeLease)) {
	l := f.contest()
	l.mu.Lock()
	if last := len(f.calls) - 1; call != "" && (call != "CheckAlive" || last < 0 || f.calls[last] != call) {
		f.calls = append(f.calls, call)
	}
	if !l.end.IsZero() && !time.Now().Before(l.end) {
		l.lose(lease.ErrBroken)
	}
	change(l)
	after := l.after
	l.after = nil
	l.mu.Unlock()
	for _, do := range after {
		do()
	}
}

// The caller of a method of fakeLease must hold mu.

// lost returns the error of a loss with the given reason.
func (l *fakeLease) lost(reason lease.Code) error {
	return &lease.LostError{Name: l.holder.Name, Token: lease.TokenOf(l.epoch), Reason: reason}
}

// lose makes the lease free and calls the OnLost handlers of its holder.
func (l *fakeLease) lose(reason lease.Code) {
	f, err := l.holder, l.lost(reason)
	l.setFree(err)
	l.callLater(f.onLost.Calls(err, panicked))
}

// setFree makes the lease free, and cancels the contexts of its holder with the given cause.
func (l *fakeLease) setFree(cause error) {
	l.after = append(l.after, l.holder.contexts.End(cause))
	l.stopTimer()
	l.holder, l.end = nil, time.Time{}
	signal(&l.freed)
}

// callLater schedules calls of handlers. After mu has been unlocked, each handler runs in its own
// goroutine.
func (l *fakeLease) callLater(calls []func()) {
	for _, call := range calls {
		l.after = append(l.after, func() { go call() })
	}
}

func (l *fakeLease) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// panicked logs the panic of a handler, as a session.Session does. The Fake stays usable.
func panicked(p any) {
	slog.Error("leasetest: a handler of a Fake panicked", "panic", fmt.Sprint(p))
}

// waitFor returns a channel that is closed by the next call of signal with the same c.
func waitFor(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// signal closes the channel that waitFor has returned, if there is one.
func signal(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
