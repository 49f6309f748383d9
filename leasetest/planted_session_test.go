package leasetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A buggySession is a Session with a bug.
type buggySession struct {
	*session.Session
	bug  string
	over lease.Authority

	handing  chan struct{} // full while a hand-over is believed on
	releases atomic.Int32  // under way
	waits    atomic.Int32  // calls of Wait
	handling atomic.Int32  // handlers that run
	gave     atomic.Bool   // a hand-over was called
	gone     atomic.Bool   // the caller of an acquire did not wait for its answer
	contexts atomic.Int32  // of WhileHeld that were not given back
	held     atomic.Bool   // the last acquire was granted
	released atomic.Bool   // since the last grant
	lost     atomic.Bool   // since the last grant

	acquiring atomic.Int32 // the number of acquires under way
	stopped   atomic.Bool  // a stop window has begun
	believes  atomic.Int64 // until when it believes at least, in Unix nanoseconds

	asking sync.Mutex // held during an acquire

	mu       sync.Mutex
	handlers []func(error)
	stops    []func() bool
	bound    []func() // give contexts of WhileHeld back
}

// wrongReasons are the reasons of all losses.
var wrongReasons = map[string]lease.Code{"loses every lease as broken": lease.ErrBroken, "loses every lease as expired": lease.ErrExpired}

func newBuggySession(t testing.TB, h Holder, bug string) lease.Lease {
	b := &buggySession{bug: bug, over: h.Authority, handing: make(chan struct{}, 1)}
	for _, e := range exchangeBugs {
		if e.bug == bug {
			b.over = e.between(b, h, h.Authority)
		}
	}
	o := &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock, Logger: slog.New(slog.DiscardHandler)}
	switch bug {
	case "asks long after a signal", "watches once":
		o.Watch = true
	case "asks too seldom":
		o.RenewInterval = h.Duration * 2 / 5
	case "counts its belief from the answer":
		if h.Duration != lease.Infinite {
			o.Duration += h.Duration / 10
		}
	case "has its stop window in name only":
		o.StopWindow = -1
	case "takes any holder":
		if lease.CheckName(h.Name) != nil || lease.CheckOwner(h.Owner) != nil || h.Duration < time.Second {
			h.Name, o.Owner, o.Duration = "name", "owner", time.Minute
		}
	case "takes over unasked":
		o.TakeOver = h.TakeOver || h.Owner != ""
	}
	s, err := session.New(b.over, h.Name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	b.Session = s
	return b
}

func (b *buggySession) OnLost(f func(error)) (stop func() bool) {
	if b.bug == "tells a handler of the loss before it" && b.held.Load() && !b.Session.CheckAlive() {
		go f(lease.ErrExpired)
	}
	b.mu.Lock()
	b.handlers = append(b.handlers, f)
	b.mu.Unlock()
	if b.bug == "recovers from nothing" {
		return b.Session.OnLost(func(err error) { go f(err) })
	}
	losses := 0
	stop = b.Session.OnLost(func(err error) {
		b.lost.Store(true)
		b.handling.Add(1)
		defer b.handling.Add(-1)
		if b.bug == "a release hides the loss that nothing had noticed" && b.releases.Load() > 0 {
			return
		}
		if lost := (*lease.LostError)(nil); errors.As(err, &lost) && wrongReasons[b.bug] != 0 {
			copied := *lost
			copied.Reason = wrongReasons[b.bug]
			err = &copied
		}
		f(err)
		b.mu.Lock()
		losses++
		again := b.bug == "tells a later loss twice" && losses > 3
		b.mu.Unlock()
		if again {
			f(err)
		}
	})
	if b.bug != "unregisters the handler that is in its place now" {
		return stop
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	place := len(b.stops)
	b.stops = append(b.stops, stop)
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if place >= len(b.stops) {
			return false
		}
		defer func() { b.stops = slices.Delete(b.stops, place, place+1) }()
		return b.stops[place]()
	}
}

func (b *buggySession) CheckAlive() bool {
	switch {
	case b.bug == "is alive after a release" && b.released.Load():
		return true
	case b.bug == "CheckAlive is a flag":
		return b.held.Load() && !b.released.Load() && !b.lost.Load()
	case b.bug == "asks whether it is alive" && b.Session.CheckAlive():
		time.Sleep(time.Second)
	}
	return len(b.handing) > 0 || time.Now().UnixNano() < b.believes.Load() || b.Session.CheckAlive()
}

func (b *buggySession) Release(ctx context.Context) error {
	b.released.Store(true)
	defer b.releases.Add(-1)
	if b.releases.Add(1) > 1 && b.bug == "answers a second release at once" {
		return nil
	}
	switch {
	case b.bug == "releases nothing after a hand-over" && b.gave.Load(), b.bug == "a release leaves a deferred release" && b.deferred():
		return nil
	case b.bug == "takes every context that a release ended for its own" && errors.Is(context.Cause(ctx), lease.ErrReleased), b.bug == "waits for a release whatever the context":
		ctx = context.WithoutCancel(ctx)
	}
	err := b.Session.Release(ctx)
	switch b.bug {
	case "hides the error of a release":
		return nil
	case "errs at every release":
		return errPlanted
	case "a release hides the loss that nothing had noticed":
		_ = wait(ctx, time.Nanosecond) // handlers run in goroutines
	}
	return err
}

// ReleaseUncertain is what session.Run calls after attempts of unknown outcome.
func (b *buggySession) ReleaseUncertain(ctx context.Context) error {
	if b.bug == "settles nothing" {
		return nil
	}
	if err := b.Session.ReleaseUncertain(ctx); b.bug != "hides a release that failed" {
		return err
	}
	return nil
}

func (b *buggySession) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.bug == "a bound context outlives its parent" {
		ctx = context.WithoutCancel(ctx)
	}
	held, giveBack := b.Session.WhileHeld(ctx)
	switch b.bug {
	case "begins no work after its stop window":
		context.AfterFunc(held, func() {
			b.stopped.Store(b.stopped.Load() || errors.Is(context.Cause(held), lease.ErrStopWindow))
		})
		if b.stopped.Load() {
			giveBack()
		}
	case "has contexts that outlive the lease":
		if b.Session.CheckAlive() {
			giveBack()
			return context.WithCancel(ctx)
		}
	case "begins work in its stop window":
		if held.Err() != nil && b.Session.CheckAlive() {
			giveBack()
			return context.WithCancel(ctx)
		}
	case "has its stop window in name only":
		if at, ok := b.Session.LastConfirmed(); ok && time.Since(at) > 10*time.Second {
			giveBack()
		}
	case "waits for its work forever", "a release leaves a deferred release":
		b.contexts.Add(1)
		return held, func() {
			b.contexts.Add(-1)
			giveBack()
		}
	case "a context that is given back was given back in time":
		ctx, cancel := context.WithCancel(held)
		return ctx, func() {
			cancel()
			giveBack()
		}
	case "waits for the first of its work":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bound = append(b.bound, giveBack)
		return held, func() {
			b.mu.Lock()
			all := b.bound
			b.mu.Unlock()
			for _, giveBack := range all {
				giveBack()
			}
		}
	}
	return held, giveBack
}

func (b *buggySession) OnBreaking(f func(time.Time)) (stop func() bool) {
	var once sync.Once
	inner := b.Session.OnBreaking(func(until time.Time) {
		if b.bug == "warns once" {
			once.Do(func() { f(until) })
		} else {
			f(until)
		}
	})
	if b.bug == "goes on warning" {
		return func() bool { return true }
	}
	return inner
}

func (b *buggySession) HandOver(ctx context.Context, to lease.ID) error {
	switch b.bug {
	case "hands over by releasing":
		return b.Session.Release(ctx)
	case "a hand-over does not end with its context":
		ctx = context.WithoutCancel(ctx)
	case "takes a done context for a hand-over":
		if ctx.Err() != nil {
			return nil
		}
	case "believes until the hand-over is answered":
		if b.Session.CheckAlive() {
			b.handing <- struct{}{}
			defer func() { <-b.handing }()
		}
	}
	if b.bug == "hands over to no ID" && to.IsZero() {
		return b.Session.Release(ctx)
	}
	b.gave.Store(true)
	err := b.Session.HandOver(ctx, to)
	switch b.bug {
	case "hands over what it does not hold":
		return nil
	case "hides that a hand-over was refused":
		if err != nil && lease.CodeOf(err).Refusal() {
			return nil
		}
	}
	return err
}

// AcquireUnlessHeld is what session.TryRun calls.
func (b *buggySession) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := b.Session.AcquireUnlessHeld(ctx)
	return tok, ok || b.bug == "a refusal that is not certain is a grant" && err == nil, err
}

func (b *buggySession) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := b.AcquireWithToken(ctx)
	return ok, err
}

func (b *buggySession) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	released, lost := b.released.Load(), b.lost.Load()
	switch {
	case b.bug == "grants nothing", b.bug == "errs if it holds" && b.CheckAlive(), b.bug == "errs after a loss" && lost:
		return "", false, errPlanted
	case b.bug == "panics in every acquire":
		panic("no lease today")
	case b.bug == "keeps a mutex while it asks": // as many would write it first
		b.asking.Lock()
		defer b.asking.Unlock()
	case b.bug == "asks under a done context" && ctx.Err() != nil:
		go func() { _ = b.Session.Wait(context.WithoutCancel(ctx)) }()
		return "", false, ctx.Err()
	case b.bug == "waits after a release" && released:
		time.Sleep(time.Minute)
	case b.bug == "reads while it holds" && b.CheckAlive():
		_, _ = lease.Inspect(ctx, b.over, b.Name())
	case b.bug == "acquires on the second":
		now := time.Now()
		_ = wait(ctx, now.Truncate(2*time.Second).Add(2*time.Second).Sub(now))
	}
	earlier := b.acquiring.Add(1) > 1
	tok, ok, err := b.Session.AcquireWithToken(ctx)
	b.acquiring.Add(-1)
	if earlier && errors.Is(err, lease.ErrReleased) && b.bug == "a release reaches the first of its acquires" {
		tok, ok, err = b.Session.AcquireWithToken(ctx)
	}
	b.gone.Store(err != nil && ctx.Err() != nil)
	if b.held.Store(ok); ok {
		b.released.Store(false)
		b.lost.Store(false)
	}
	if b.bug == "is granted after a release" && released || b.bug == "is granted after a loss" && lost {
		return tok, true, nil
	}
	return tok, ok, err
}

// deferred reports whether work of a lost term is still running.
func (b *buggySession) deferred() bool { return b.contexts.Load() > 0 && !b.Session.CheckAlive() }

func (b *buggySession) Close(ctx context.Context) error {
	switch b.bug {
	case "closes when its handlers have returned":
		for n := 0; n < 1000 && b.handling.Load() > 0; n++ {
			_ = wait(ctx, time.Second)
		}
	case "closes only what it holds":
		if !b.Session.CheckAlive() {
			return nil
		}
	case "closes whatever its context":
		return b.Session.Close(context.WithoutCancel(ctx))
	case "tells a loss when it is closed":
		if !b.CheckAlive() {
			for _, f := range b.handlers {
				go f(lease.ErrExpired)
			}
		}
	case "can be acquired after close":
		return b.Session.Release(ctx)
	case "does not close under a done context":
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return b.Session.Close(ctx)
}

func (b *buggySession) Wait(ctx context.Context) error {
	switch b.bug {
	case "a release ends the first of its waits":
		if b.waits.Add(1) == 1 {
			break
		}
		for ctx.Err() == nil && b.heldByAnother(ctx) {
			_ = wait(ctx, time.Second)
		}
		return ctx.Err()
	case "a wait returns the error of a read":
		if _, err := lease.Inspect(ctx, b.over, b.Name()); err != nil {
			return err
		}
	case "waits when it is free":
		_ = wait(ctx, time.Hour)
	}
	switch err := b.Session.Wait(ctx); b.bug {
	case "hides the error of a wait":
		return nil
	case "errs at every wait":
		return errPlanted
	default:
		return err
	}
}

func (b *buggySession) heldByAnother(ctx context.Context) bool {
	res, err := lease.Inspect(ctx, b.over, b.Name())
	return err == nil && res.Record.State.Locked()
}

func (b *buggySession) LastConfirmed() (time.Time, bool) {
	at, held := b.Session.LastConfirmed()
	if b.bug == "confirms whenever it is asked" {
		at = time.Now()
	}
	return at, held
}

func buggySessions(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newBuggySession(t, h, bug)
	}}
}

// wait waits for d, or until the context is done.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
