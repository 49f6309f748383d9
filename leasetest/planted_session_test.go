package leasetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
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

	acquiring atomic.Int32 // the number of acquires under way
	stopped   atomic.Bool  // a stop window has begun
	believes  atomic.Int64 // until when it believes at least, in Unix nanoseconds

	mu       sync.Mutex
	handlers []func(error)
	stops    []func() bool
	bound    []func() // give contexts of WhileHeld back
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
	case "takes over unasked":
		h.TakeOver = h.TakeOver || h.Owner != ""
	case "forgets a take-over without an answer":
		over = keepsChanged(over, func(err error) bool { return err != nil && !lease.CodeOf(err).Refusal() })
	case "does not see that it was taken over":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if *err != nil && req.Action == lease.ActionRenew {
				res.Record.Owner = "another"
			}
		})
	case "takes a hidden owner for another":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.ID.IsZero() {
				res.Record.Owner = "hidden"
			}
		})
	case "tires of renewing":
		over = leasefault.Script(over, leasefault.From(64, lease.ActionRenew, leasefault.FailRequest))
	case "believes a renewal for what was asked for":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRenew && *err == nil && res.MinRemaining != lease.Infinite {
				res.MinRemaining = h.Duration
			}
		})
	case "does not look at the token of an answer":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.ActionRenew {
				res.Record.Epoch = min(1, res.Record.Epoch)
			}
		})
	case "forgets the IDs that it has given up":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionAcquire && *err != nil && res.Record.ID != req.Proposed {
				res.Record.ID = lease.ID{1}
			}
		})
	case "does not look at what a refused release shows":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRelease && *err != nil {
				res.Record = lease.Record{}
			}
		})
	case "sends however many requests hang":
		over = wrongAuthority{over, forgetful}
	case "keeps what it could not hand over":
		over = keepsChanged(over, func(err error) bool { return lease.CodeOf(err).Refusal() })
	case "takes over in any case":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && strings.EqualFold(res.Record.Owner, h.Owner) {
				res.Record.Owner = h.Owner
			}
		})
	case "releases what was granted only":
		over = releasesGranted(over)
	case "watches once":
		var watches atomic.Int32
		over = leasefault.Lossy(over, func(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
			if watches.Add(1) > 1 {
				return nil, errors.New("it has watched before")
			}
			return watch(ctx)
		})
	case "keeps a break that is certain of nothing":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.State == lease.Breaking && res.MinRemaining == 0 {
				res.MinRemaining = res.Record.Remaining(res.Now)
			}
		})
	case "an answer reaches any later term":
		over = mixesAnswers(over)
	case "tries a release once":
		over = releasesOnce(over)
	case "releases a broken infinite lease after a minute":
		over = wrongAuthority{over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
			res, err := do(ctx, name, req)
			if req.Action == lease.ActionRenew && lease.CodeOf(err) == lease.ErrBroken {
				time.AfterFunc(time.Minute, func() { _, _ = do(context.WithoutCancel(ctx), name, release(req.ID)) })
			}
			return res, err
		}}
	}
	b := &buggySession{bug: bug, over: over, handing: make(chan struct{}, 1)}
	var stopWindow, interval time.Duration
	switch bug {
	case "asks too seldom":
		interval = h.Duration * 2 / 5
	case "has its stop window in name only":
		stopWindow = -1
	case "believes a renewal that it had given up":
		over = wrongAuthority{over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
			res, err := do(ctx, name, req)
			if req.Action == lease.ActionRenew && err == nil && ctx.Err() != nil {
				b.believes.Store(time.Now().Add(res.MinRemaining).UnixNano())
			}
			return res, err
		}}
	case "believes the last answer about a break":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.State == lease.Breaking {
				b.believes.Store(time.Now().Add(res.MinRemaining).UnixNano())
			}
		})
	case "keeps what it took over without its caller":
		over = leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(b.gone.Load, leasefault.FailRequest)))
	case "waits for its work forever":
		over = leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(func() bool { return b.contexts.Load() > 0 }, leasefault.FailRequest)))
	}
	s, err := session.New(over, h.Name, &session.Options{
		Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock, StopWindow: stopWindow, RenewInterval: interval, Watch: slices.Contains([]string{"watches", "watches once"}, bug), Logger: slog.New(slog.DiscardHandler),
	})
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

// The following functions give a session a bug by what they do between it and its authority.

// sameID proposes the same ID in every acquire.
func sameID(over lease.Authority) lease.Authority {
	var mu sync.Mutex
	var id, latest lease.ID // the only ID that is sent, and the ID that it stands for
	return wrongAuthority{over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if req.Action == lease.ActionAcquire {
			if latest = req.Proposed; id.IsZero() {
				id = req.Proposed
			}
			req.Proposed = id
		}
		if req.ID == latest && !req.ID.IsZero() {
			req.ID = id
		}
		res, err := do(ctx, name, req)
		if res.Record.ID == id {
			res.Record.ID = latest
		}
		return res, err
	}}
}

// forgetful returns when the context of a request is done, whether or not the request has returned.
func forgetful(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
	type answer struct {
		res lease.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := do(ctx, name, req)
		answers <- answer{res, err}
	}()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
		return lease.Result{}, ctx.Err()
	}
}

// keepsSome sends no release for which the function keeps returns true, and tells the function sent what else was sent.
func keepsSome(over lease.Authority, keeps func(lease.ID) bool, sent func(lease.Request, error)) lease.Authority {
	var mu sync.Mutex
	return wrongAuthority{over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		mu.Lock()
		kept := req.Action == lease.ActionRelease && keeps(req.ID)
		mu.Unlock()
		if kept {
			return lease.Result{Now: time.Now()}, nil
		}
		res, err := do(ctx, name, req)
		mu.Lock()
		defer mu.Unlock()
		sent(req, err)
		return res, err
	}}
}

// keepsChanged sends no release after a change with an error that f selects.
func keepsChanged(over lease.Authority, f func(err error) bool) lease.Authority {
	keeps := false
	return keepsSome(over, func(lease.ID) bool { return keeps }, func(req lease.Request, err error) {
		if req.Action == lease.ActionChange {
			keeps = f(err)
		}
	})
}

// releasesGranted sends a release only for an ID whose acquire was answered with a grant.
func releasesGranted(over lease.Authority) lease.Authority {
	granted := map[lease.ID]bool{}
	return keepsSome(over, func(id lease.ID) bool { return !granted[id] }, func(req lease.Request, err error) {
		if req.Action == lease.ActionAcquire && err == nil {
			granted[req.Proposed] = true
		}
	})
}

// releasesOnce sends one release for each ID.
func releasesOnce(over lease.Authority) lease.Authority {
	tried := map[lease.ID]bool{}
	return keepsSome(over, func(id lease.ID) bool {
		again := tried[id]
		tried[id] = true
		return again
	}, func(lease.Request, error) {})
}

// mixesAnswers answers a renewal with the late refusal of a renewal of an earlier term, if there is one.
func mixesAnswers(over lease.Authority) lease.Authority {
	var mu sync.Mutex
	var newest lease.ID // the last proposed ID
	var late error      // the refusal; nil if there is none
	var lateRes lease.Result
	return wrongAuthority{over, func(ctx context.Context, name string, req lease.Request, do do) (lease.Result, error) {
		res, err := do(ctx, name, req)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case req.Action == lease.ActionAcquire:
			newest = req.Proposed
		case req.Action == lease.ActionRenew && req.ID != newest && lease.CodeOf(err).Refusal():
			lateRes, late = res, err
		case req.Action == lease.ActionRenew && late != nil:
			res, err, late = lateRes, late, nil
		}
		return res, err
	}}
}

func (b *buggySession) OnLost(f func(error)) (stop func() bool) {
	b.mu.Lock()
	b.handlers = append(b.handlers, f)
	b.mu.Unlock()
	losses := 0
	stop = b.Session.OnLost(func(err error) {
		b.handling.Add(1)
		defer b.handling.Add(-1)
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
	return len(b.handing) > 0 || time.Now().UnixNano() < b.believes.Load() || b.Session.CheckAlive()
}

func (b *buggySession) Release(ctx context.Context) error {
	if b.bug == "releases nothing after a hand-over" && b.gave.Load() {
		return nil
	}
	if b.bug == "answers a second release at once" {
		if b.releases.Add(1) > 1 {
			return nil
		}
		defer b.releases.Store(0)
	}
	if b.bug == "a release leaves a deferred release" && b.deferred() {
		return nil
	}
	if b.bug == "takes every context that a release ended for its own" && errors.Is(context.Cause(ctx), lease.ErrReleased) {
		ctx = context.WithoutCancel(ctx)
	}
	return b.Session.Release(ctx)
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

func (b *buggySession) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	switch b.bug {
	case "reads while it holds":
		if b.CheckAlive() {
			_, _ = lease.Inspect(ctx, b.over, b.Name())
		}
	case "acquires on the second":
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
	return b.Session.Wait(ctx)
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
