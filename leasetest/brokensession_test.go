package leasetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A brokenSession is this module's own holder with a bug, for the abilities that a dumbLease
// lacks.
type brokenSession struct {
	*session.Session
	bug  string
	over lease.Authority

	mu       sync.Mutex
	handlers []func(error)
}

func newBrokenSession(t testing.TB, h Holder, bug string) lease.Lease {
	over := h.Over
	switch bug {
	case "takes over from anybody":
		over = Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil {
				res.Record.Owner = h.Owner
			}
		})
	case "takes over whatever the state":
		over = Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if *err != nil && req.Action == lease.Acquire {
				res.Record.State = lease.Leased
			}
			if *err != nil && req.Action == lease.Change {
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
		over = Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.ID.IsZero() {
				res.Record.Owner = "hidden"
			}
		})
	case "keeps what it took over from a break":
		over = keeps{over}
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
	if bug == "is not bound to an incarnation" {
		return struct{ lease.TokenAcquirer }{s}
	}
	return &brokenSession{Session: s, bug: bug, over: over}
}

// changesFirst changes the ID that it finds before it lets an acquire through.
type changesFirst struct{ lease.Authority }

func (a changesFirst) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.Acquire {
		if res, err := lease.Inspect(ctx, a.Authority, name); err == nil && res.Record.Owner == req.Owner && res.Record.State == lease.Leased {
			_, _ = a.Authority.Do(ctx, name, lease.Request{Action: lease.Change, ID: res.Record.ID, Proposed: req.Proposed})
		}
	}
	return a.Authority.Do(ctx, name, req)
}

// keeps says that it released, and does not.
type keeps struct{ lease.Authority }

func (a keeps) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.Release {
		return lease.Result{Now: time.Now()}, nil
	}
	return a.Authority.Do(ctx, name, req)
}

func (b *brokenSession) OnLost(f func(error)) (stop func() bool) {
	b.mu.Lock()
	b.handlers = append(b.handlers, f)
	b.mu.Unlock()
	return b.Session.OnLost(f)
}

func (b *brokenSession) OnBreaking(f func(time.Time)) (stop func() bool) {
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

func (b *brokenSession) HandOver(ctx context.Context, to lease.ID) error {
	if b.bug == "hands over by releasing" {
		return b.Session.Release(ctx)
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

func (b *brokenSession) Close(ctx context.Context) error {
	if b.bug == "can be acquired after close" {
		return b.Session.Release(ctx)
	}
	return b.Session.Close(ctx)
}

func (b *brokenSession) Wait(ctx context.Context) error {
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

func (b *brokenSession) watch(ctx context.Context) (<-chan struct{}, error) {
	return b.over.(lease.Watcher).Watch(ctx, b.Name())
}

func (b *brokenSession) heldByAnother(ctx context.Context) bool {
	res, err := lease.Inspect(ctx, b.over, b.Name())
	return err == nil && res.Record.State.Locked()
}

func (b *brokenSession) Confirmed() (time.Time, bool) {
	at, held := b.Session.Confirmed()
	if b.bug == "confirms whenever it is asked" {
		at = time.Now()
	}
	return at, held
}

func brokenSessions(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newBrokenSession(t, h, bug)
	}}
}
