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

// A Fake is a [lease.Lease] for unit tests of code that takes one. It asks no authority. The test
// says what the next Acquire returns ([Fake.Next], [Fake.NextAfter]), when the lease is lost
// ([Fake.Lose]) or broken ([Fake.Break]), and asks which calls were made ([Fake.Calls]).
//
// The zero Fake is ready to use: the lease is free, and every Acquire is granted. It never expires
// by itself. A Fake is a [lease.TokenAcquirer] and a [lease.Waiter], and has the methods WhileHeld
// and OnBreaking of a session.Session. It keeps the contract of [lease.Lease]: [TestLease] checks it.
//
// A Fake needs no clean-up. It starts a goroutine for each handler that it calls, and none else. It
// can be used in a [testing/synctest] bubble if it is made there. Its methods may be called by
// several goroutines at once, and inside handlers. A Fake must not be copied.
type Fake struct {
	// Name is the name of the lease in a [*lease.LostError]. It may be empty.
	Name string

	onLost     handlers.Set[error]
	onBreaking handlers.Set[time.Time]
	contexts   cancel.Set // of WhileHeld

	made  sync.Once
	lease *fakeLease // see contest

	// Guarded by the mutex of the fakeLease.
	answers  []fakeAnswer
	calls    []string
	released chan struct{} // closed by Release; nil if nobody waits for that
}

// A fakeLease is the lease that a Fake and its rivals contend for.
type fakeLease struct {
	mu     sync.Mutex
	epoch  uint64
	holder *Fake         // nil if the lease is free
	end    time.Time     // of a break; zero if the lease is not breaking
	timer  *time.Timer   // of the break
	freed  chan struct{} // closed when the lease becomes free; nil if nobody waits for that
	after  []func()      // what has to be done once mu is unlocked
}

// A fakeAnswer is what one Acquire returns.
type fakeAnswer struct {
	delay time.Duration
	ok    bool
	err   error
}

// Next sets what the next Acquire returns: true and nil if it is granted, false and nil if another
// holder has the lease, false and an error if the outcome is unknown. Several calls of Next are for
// as many calls of Acquire, in their order. An Acquire without an answer of its own is granted. An
// Acquire while the lease is held takes no answer and returns true, and one while a rival holds the
// lease is never granted.
//
// Next panics if ok is true and err is not nil, because no Acquire returns that.
func (f *Fake) Next(ok bool, err error) { f.NextAfter(0, ok, err) }

// NextAfter is Next for an Acquire that takes the time d. If the context of the Acquire ends first,
// or Release is called, that Acquire is not granted.
func (f *Fake) NextAfter(d time.Duration, ok bool, err error) {
	must(!ok || err == nil, "Fake.Next: err is %q, and must be nil if ok is true", err)
	must(d >= 0, "Fake.NextAfter: d is %v, and must not be negative", d)
	f.step("", func(*fakeLease) { f.answers = append(f.answers, fakeAnswer{d, ok, err}) })
}

// Lose loses the lease now, for the given reason, and reports whether it was held. Handlers of OnLost
// are called with a [*lease.LostError], and contexts of WhileHeld end with it as their cause.
func (f *Fake) Lose(reason lease.Code) (held bool) {
	f.step("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.lose(reason)
		}
	})
	return held
}

// EndWork ends the contexts of WhileHeld, as a session.Session does before a lease that is not
// renewed ends: their cause is a [*lease.LostError] with the reason [lease.ErrStopWindow]. The lease
// is still held. EndWork reports whether it was.
func (f *Fake) EndWork() (held bool) {
	f.step("", func(l *fakeLease) {
		if held = l.holder == f; held {
			l.after = append(l.after, f.contexts.End(l.lost(lease.ErrStopWindow)))
		}
	})
	return held
}

// Break breaks the lease as an operator would, and reports whether it was held. It stays held for the
// period, and is then lost for the reason [lease.ErrBroken]. A period of zero loses it now. Handlers
// of OnBreaking are called with the end of the period. A second Break can only shorten the period.
func (f *Fake) Break(period time.Duration) (held bool) {
	must(period >= 0, "Fake.Break: period is %v, and must not be negative", period)
	f.step("", func(l *fakeLease) {
		held = l.holder == f
		end := time.Now().Add(period)
		switch {
		case !held || !l.end.IsZero() && !end.Before(l.end):
		case period == 0:
			l.lose(lease.ErrBroken)
		default:
			l.stopTimer()
			l.end = end
			l.timer = time.AfterFunc(period, func() { f.step("", func(*fakeLease) {}) })
			l.call(f.onBreaking.Calls(end, panicked))
		}
	})
	return held
}

// Rival returns a Fake for another holder of the same lease. While one of them holds the lease, an
// Acquire of any other is denied.
func (f *Fake) Rival() *Fake { return &Fake{Name: f.Name, lease: f.contest()} }

// Calls returns the methods of [lease.Lease], [lease.Waiter] and session.Session that were called so
// far, in order, such as "Acquire" or "Release". AcquireWithToken counts as Acquire. Calls of CheckAlive
// that follow each other count as one.
func (f *Fake) Calls() (calls []string) {
	f.step("", func(*fakeLease) { calls = slices.Clone(f.calls) })
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
	f.step("Acquire", func(l *fakeLease) {
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
	f.step("", func(l *fakeLease) {
		select {
		case <-released:
			err = lease.ErrReleased
			return
		default:
		}
		switch {
		case l.holder == f: // another call of Acquire was granted meanwhile
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
	f.step("Release", func(l *fakeLease) {
		signal(&f.released)
		if l.holder == f {
			l.free(lease.ErrReleased)
		}
	})
	return nil
}

// CheckAlive implements [lease.Lease].
func (f *Fake) CheckAlive() (held bool) {
	f.step("CheckAlive", func(l *fakeLease) { held = l.holder == f })
	return held
}

// OnLost implements [lease.Lease].
func (f *Fake) OnLost(handler func(error)) (stop func() bool) {
	f.step("OnLost", func(*fakeLease) {})
	return f.onLost.Add(handler)
}

// OnBreaking registers a handler that is called with the end of a break, once the lease is breaking
// and again if the break is shortened.
func (f *Fake) OnBreaking(handler func(until time.Time)) (stop func() bool) {
	f.step("OnBreaking", func(*fakeLease) {})
	return f.onBreaking.Add(handler)
}

// WhileHeld returns a context that ends when the lease is lost or released, or at once if it is not
// held: see [lease.WhileHeld].
func (f *Fake) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	c, held := cancel.New(ctx), false
	f.step("WhileHeld", func(l *fakeLease) {
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

// Wait implements [lease.Waiter]. It returns nil as soon as no rival holds the lease, or when Release
// is called.
func (f *Fake) Wait(ctx context.Context) error {
	name := "Wait"
	for ctx.Err() == nil {
		free := false
		var freed, released <-chan struct{}
		f.step(name, func(l *fakeLease) {
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

// contest returns the lease that f and its rivals contend for.
func (f *Fake) contest() *fakeLease {
	f.made.Do(func() {
		if f.lease == nil {
			f.lease = new(fakeLease)
		}
	})
	return f.lease
}

// step notes a call, if it has a name, and changes the lease under its mutex.
func (f *Fake) step(call string, change func(*fakeLease)) {
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

// The methods of a fakeLease are called with mu held.

// lost is the error of a loss.
func (l *fakeLease) lost(reason lease.Code) error {
	return &lease.LostError{Name: l.holder.Name, Token: lease.TokenOf(l.epoch), Reason: reason}
}

// lose ends the incarnation of the holder with a loss.
func (l *fakeLease) lose(reason lease.Code) {
	f, err := l.holder, l.lost(reason)
	l.free(err)
	l.call(f.onLost.Calls(err, panicked))
}

// free ends the incarnation of the holder. The cause is that of its contexts.
func (l *fakeLease) free(cause error) {
	l.after = append(l.after, l.holder.contexts.End(cause))
	l.stopTimer()
	l.holder, l.end = nil, time.Time{}
	signal(&l.freed)
}

// call calls handlers once mu is unlocked, each in a goroutine of its own.
func (l *fakeLease) call(calls []func()) {
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

// panicked reports a handler that panicked. Like a session.Session, a Fake goes on.
func panicked(p any) {
	slog.Error("leasetest: a handler of a Fake panicked", "panic", fmt.Sprint(p))
}

// waitFor returns a channel that the next signal closes.
func waitFor(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// signal closes the channel that waitFor returned, if there is one.
func signal(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
