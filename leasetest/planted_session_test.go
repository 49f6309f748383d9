package leasetest

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// A buggySession is this module's own holder with a bug, for the abilities that a plainLease
// lacks.
type buggySession struct {
	*session.Session
	bug  string
	over lease.Authority

	handing  chan struct{} // full while a hand-over is believed on
	releases atomic.Int32  // under way
	acquires sync.WaitGroup

	mu       sync.Mutex
	handlers []func(error)
	stops    []func() bool
	warned   []func(time.Time)
}

func newBuggySession(t testing.TB, h Holder, bug string) lease.Lease {
	over := h.Authority
	switch bug {
	case "takes over from anybody":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil {
				res.Record.Owner = h.Owner
			}
		})
	case "takes over whatever the state":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if *err != nil && req.Action == lease.ActionAcquire {
				res.Record.State = lease.Leased
			}
			if *err != nil && req.Action == lease.ActionChange {
				*err = context.DeadlineExceeded
			}
		})
	case "does not take over":
		h.TakeOver = false
	case "takes over unasked":
		h.TakeOver = h.TakeOver || h.Owner != ""
	case "takes over first and asks then":
		over = changesFirst{over}
	case "takes a hidden owner for another":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.ID.IsZero() {
				res.Record.Owner = "hidden"
			}
		})
	case "keeps what it took over from a break":
		over = keeps{over}
	case "tires of renewing":
		over = leasefault.Script(over, leasefault.From(64, lease.ActionRenew, leasefault.FailRequest))
	case "believes a renewal for what was asked for":
		over = believes(over, func(time.Duration) time.Duration { return h.Duration })
	case "believes a renewal to the last":
		over = believes(over, func(sure time.Duration) time.Duration { return sure + sure/100 })
	}
	s, err := session.New(over, h.Name, &session.Options{
		Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return &buggySession{Session: s, bug: bug, over: over, handing: make(chan struct{}, 1)}
}

// believes shows what f makes of what is sure of a renewal.
func believes(over lease.Authority, f func(time.Duration) time.Duration) lease.Authority {
	return leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
		if req.Action == lease.ActionRenew && *err == nil && res.MinRemaining != lease.Infinite {
			res.MinRemaining = f(res.MinRemaining)
		}
	})
}

// changesFirst changes the ID that it finds before it lets an acquire through.
type changesFirst struct{ lease.Authority }

func (a changesFirst) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionAcquire {
		if res, err := lease.Inspect(ctx, a.Authority, name); err == nil && res.Record.Owner == req.Owner && res.Record.State == lease.Leased {
			_, _ = a.Authority.Do(ctx, name, lease.Request{Action: lease.ActionChange, ID: res.Record.ID, Proposed: req.Proposed})
		}
	}
	return a.Authority.Do(ctx, name, req)
}

// keeps says that it released, and does not.
type keeps struct{ lease.Authority }

func (a keeps) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease {
		return lease.Result{Now: time.Now()}, nil
	}
	return a.Authority.Do(ctx, name, req)
}

func (b *buggySession) OnLost(f func(error)) (stop func() bool) {
	b.mu.Lock()
	b.handlers = append(b.handlers, f)
	b.mu.Unlock()
	losses := 0
	stop = b.Session.OnLost(func(err error) {
		f(err)
		b.mu.Lock()
		losses++
		again := b.bug == "tells a later loss twice" && losses > 3
		b.mu.Unlock()
		if again {
			f(err)
		}
	})
	if b.bug != "unregisters the newest handler" {
		return stop
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stops = append(b.stops, stop)
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.stops) == 0 {
			return false
		}
		last := b.stops[len(b.stops)-1]
		b.stops = b.stops[:len(b.stops)-1]
		return last()
	}
}

func (b *buggySession) CheckAlive() bool {
	return len(b.handing) > 0 || b.Session.CheckAlive()
}

func (b *buggySession) Release(ctx context.Context) error {
	if b.bug == "answers a second release at once" {
		if b.releases.Add(1) > 1 {
			return nil
		}
		defer b.releases.Store(0)
	}
	return b.Session.Release(ctx)
}

func (b *buggySession) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	switch b.bug {
	case "a bound context outlives its parent":
		ctx = context.WithoutCancel(ctx)
	case "is not bound to an incarnation":
		return lease.WhileHeld(ctx, struct{ lease.Lease }{b.Session})
	}
	return b.Session.WhileHeld(ctx)
}

func (b *buggySession) OnBreaking(f func(time.Time)) (stop func() bool) {
	if b.bug == "warns one after the other" {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.warned = append(b.warned, f); len(b.warned) > 1 {
			return nil
		}
		return b.Session.OnBreaking(func(until time.Time) {
			b.mu.Lock()
			all := b.warned
			b.mu.Unlock()
			for _, f := range all {
				f(until)
			}
		})
	}
	var once sync.Once
	inner := b.Session.OnBreaking(func(until time.Time) {
		switch b.bug {
		case "warns once":
			once.Do(func() { f(until) })
		case "warns of a later end":
			f(until.Add(time.Minute))
		case "does not warn":
		default:
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
	case "hands over behind a done context, and goes on":
		if ctx.Err() != nil {
			_, _ = b.over.Do(context.WithoutCancel(ctx), b.Name(), lease.Request{Action: lease.ActionChange, ID: b.ID(), Proposed: to})
			return ctx.Err()
		}
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
	err := b.Session.HandOver(ctx, to)
	switch b.bug {
	case "tells a hand-over as a loss":
		for _, f := range b.handlers {
			f(lease.ErrReleased)
		}
	case "hands over what it does not hold":
		return nil
	case "hides that a hand-over was refused":
		if err != nil && lease.CodeOf(err).Refusal() {
			return nil
		}
	}
	return err
}

func (b *buggySession) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	b.acquires.Add(1)
	defer b.acquires.Done()
	return b.Session.AcquireWithToken(ctx)
}

func (b *buggySession) Close(ctx context.Context) error {
	switch b.bug {
	case "closes when its acquires are over":
		go func() {
			b.acquires.Wait()
			_ = b.Session.Close(context.WithoutCancel(ctx))
		}()
		<-ctx.Done()
		return ctx.Err()
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
	case "does not wake up":
		if !b.CheckAlive() {
			<-ctx.Done()
		}
		return ctx.Err()
	case "waits for signals alone":
		if signals, err := b.watch(ctx); err == nil {
			<-signals
		}
		for ctx.Err() == nil && b.heldByAnother(ctx) {
			_ = wait(ctx, time.Hour)
		}
		return ctx.Err()
	case "takes a lost watch for news":
		if signals, err := b.watch(ctx); err == nil && b.heldByAnother(ctx) {
			if _, open := <-signals; !open {
				_ = wait(ctx, time.Millisecond) // or it would never end
				return ctx.Err()
			}
		}
	case "waits when it is free":
		_ = wait(ctx, time.Hour)
	}
	return b.Session.Wait(ctx)
}

func (b *buggySession) watch(ctx context.Context) (<-chan struct{}, error) {
	return b.over.(lease.Watcher).Watch(ctx, b.Name())
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
