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

// A buggySession is this module's own holder with a bug, for the abilities that a plainLease
// lacks.
type buggySession struct {
	*session.Session
	bug  string
	over lease.Authority

	handing  chan struct{} // full while a hand-over is believed on
	releases atomic.Int32  // under way
	waits    atomic.Int32  // calls of Wait
	handling atomic.Int32  // handlers that run
	gave     atomic.Bool   // a hand-over was called
	unknown  atomic.Bool   // a hand-over got no answer
	stopped  atomic.Bool   // a stop window has begun
	gone     atomic.Bool   // the caller of an acquire did not wait for its answer
	refused  atomic.Bool   // the last acquire was
	contexts atomic.Int32  // of WhileHeld that were not given back
	acquires sync.WaitGroup

	acquiring atomic.Int32 // the number of acquires under way

	mu       sync.Mutex
	token    lease.Token // of the last acquire
	handlers []func(error)
	stops    []func() bool
	warned   []func(time.Time)
	warnedOf lease.Token // of the first break
	bound    []func()    // give contexts of WhileHeld back
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
	case "forgets a take-over without an answer":
		over = keepsChanged{over, new(atomic.Bool), func(err error) bool { return err != nil && !lease.CodeOf(err).Refusal() }}
	case "takes over first and asks then":
		over = changesFirst{over}
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
	case "keeps what it took over from a break":
		over = keeps{over}
	case "knows a take-over only if it takes over itself":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if *err != nil && req.Action == lease.ActionRenew && !h.TakeOver {
				res.Record.Owner = "another"
			}
		})
	case "renews nothing in its stop window":
		over = &stopsRenewing{Authority: over, window: h.Duration/6 + h.Duration/50} // a Session also counts clock drift and a margin
	case "tires of renewing":
		over = leasefault.Script(over, leasefault.From(64, lease.ActionRenew, leasefault.FailRequest))
	case "believes a renewal for what was asked for":
		over = believes(over, func(time.Duration) time.Duration { return h.Duration })
	case "believes a renewal to the last":
		over = believes(over, func(sure time.Duration) time.Duration { return sure + sure/100 })
	}
	switch bug {
	case "proposes again what was taken from it":
		over = &sameID{Authority: over}
	case "does not look at what a refused release shows":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRelease && *err != nil {
				res.Record = lease.Record{}
			}
		})
	case "sends however many requests hang":
		over = forgetful{over}
	case "counts a request that returned late as stuck":
		over = countsLate{over, new(atomic.Int32)}
	case "does not know an ID that it has given up":
		over = leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionAcquire && *err != nil {
				res.Record.ID = lease.ID{1}
			}
		})
	case "keeps what it could not hand over":
		over = keepsChanged{over, new(atomic.Bool), func(err error) bool { return lease.CodeOf(err).Refusal() }}
	case "takes over in any case":
		over = takesFor(over, h.Owner, strings.EqualFold)
	case "takes over in any spaces":
		over = takesFor(over, h.Owner, func(one, other string) bool { return strings.TrimSpace(one) == strings.TrimSpace(other) })
	case "renews at every signal":
		over = &signalRenews{Authority: over}
	case "releases what was granted only":
		over = &releasesGranted{Authority: over, granted: map[lease.ID]bool{}}
	case "takes a later acquire without an answer for refused":
		var acquires atomic.Int32
		over = leasefault.Answer(over, func(req lease.Request, _ *lease.Result, err *error) {
			if req.Action == lease.ActionAcquire && acquires.Add(1) > 1 && *err != nil && !lease.CodeOf(*err).Refusal() {
				*err = lease.ErrHeldByOther
			}
		})
	case "watches once":
		over = &watchesOnce{Authority: over}
	case "tries a release once":
		over = &releasesOnce{Authority: over, tried: map[lease.ID]bool{}}
	case "keeps a break that is certain of nothing":
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.State == lease.Breaking && res.MinRemaining == 0 {
				res.MinRemaining = res.Record.Remaining(res.Now)
			}
		})
	case "releases a broken infinite lease after a minute":
		over = releasesLater{over, time.Minute}
	case "its timers run late":
		h.Clock = lateClock{h.Clock}
	}
	b := &buggySession{bug: bug, over: over, handing: make(chan struct{}, 1)}
	var stopWindow, margin, interval time.Duration
	switch bug {
	case "asks too seldom":
		interval = h.Duration * 2 / 5
	case "warns of every earlier end": // its margin is in its belief alone
		margin = 1
		over = leasefault.Answer(over, func(_ lease.Request, res *lease.Result, _ *error) {
			res.MinRemaining = max(0, res.MinRemaining-10*time.Millisecond)
		})
	case "has its stop window in name only":
		stopWindow = -1
	case "keeps what it took over without its caller":
		over = leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(b.gone.Load, leasefault.FailRequest)))
	case "waits for its work forever":
		over = leasefault.Script(over, leasefault.Always(lease.ActionRelease, leasefault.If(func() bool { return b.contexts.Load() > 0 }, leasefault.FailRequest)))
	}
	s, err := session.New(over, h.Name, &session.Options{
		Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock, StopWindow: stopWindow, Margin: margin, RenewInterval: interval, Watch: slices.Contains([]string{"watches", "watches once", "renews at every signal"}, bug), Logger: slog.New(slog.DiscardHandler),
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

// believes applies f to the MinRemaining in each answer to a renewal.
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

// stopsRenewing fails every renewal that is sent in the stop window of its lease.
type stopsRenewing struct {
	lease.Authority
	window time.Duration
	mu     sync.Mutex
	ends   time.Time // of what was granted last
}

func (a *stopsRenewing) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	ends := a.ends
	a.mu.Unlock()
	sent := time.Now()
	if req.Action == lease.ActionRenew && sent.After(ends.Add(-a.window)) {
		return lease.Result{}, errors.New("it is too late")
	}
	res, err := a.Authority.Do(ctx, name, req)
	if err == nil && req.Action != lease.ActionRead {
		a.mu.Lock()
		a.ends = sent.Add(res.MinRemaining)
		a.mu.Unlock()
	}
	return res, err
}

// sameID proposes the same ID in every acquire.
type sameID struct {
	lease.Authority
	mu     sync.Mutex
	id     lease.ID // the only ID that is sent
	latest lease.ID // the ID that it stands for
}

func (a *sameID) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if req.Action == lease.ActionAcquire {
		if a.latest = req.Proposed; a.id.IsZero() {
			a.id = req.Proposed
		}
		req.Proposed = a.id
	}
	if req.ID == a.latest && !req.ID.IsZero() {
		req.ID = a.id
	}
	res, err := a.Authority.Do(ctx, name, req)
	if res.Record.ID == a.id {
		res.Record.ID = a.latest
	}
	return res, err
}

// forgetful returns when the context of a request is done, whether or not the request has returned.
type forgetful struct{ lease.Authority }

func (a forgetful) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	type answer struct {
		res lease.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := a.Authority.Do(ctx, name, req)
		answers <- answer{res, err}
	}()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
		return lease.Result{}, ctx.Err()
	}
}

// countsLate sends nothing more once two renewals have returned after their contexts had ended.
type countsLate struct {
	lease.Authority
	late *atomic.Int32
}

func (a countsLate) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if a.late.Load() >= 2 {
		return lease.Result{}, errors.New("two requests are stuck")
	}
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionRenew && ctx.Err() != nil {
		a.late.Add(1)
	}
	return res, err
}

// keeps says that it released, and does not.
type keeps struct{ lease.Authority }

func (a keeps) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease {
		return lease.Result{Now: time.Now()}, nil
	}
	return a.Authority.Do(ctx, name, req)
}

// keepsChanged sends no release after a change with an error that f selects.
type keepsChanged struct {
	lease.Authority
	keeps *atomic.Bool
	f     func(err error) bool
}

func (a keepsChanged) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease && a.keeps.Load() {
		return lease.Result{Now: time.Now()}, nil
	}
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionChange {
		a.keeps.Store(a.f(err))
	}
	return res, err
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
	if b.bug == "forgets a hand-over without an answer" && b.unknown.Load() {
		return nil
	}
	if b.bug == "releases what it has acquired only" && !b.Session.CheckAlive() {
		return nil
	}
	if b.bug == "a release leaves a deferred release" && b.deferred() {
		return nil
	}
	if b.bug == "a release ends with the context that it ends" {
		done := make(chan error, 1)
		go func() { done <- b.Session.Release(context.WithoutCancel(ctx)) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if b.bug == "takes every context that a release ended for its own" && errors.Is(context.Cause(ctx), lease.ErrReleased) {
		ctx = context.WithoutCancel(ctx)
	}
	return b.Session.Release(ctx)
}

// Settle is what session.Run calls after attempts of unknown outcome.
func (b *buggySession) Settle(ctx context.Context) error {
	if b.bug == "releases what it has acquired only" || b.bug == "settles nothing after a refusal" && b.refused.Load() {
		return nil
	}
	if err := b.Session.Settle(ctx); b.bug != "hides a release that failed" {
		return err
	}
	return nil
}

func (b *buggySession) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	switch b.bug {
	case "a bound context outlives its parent":
		ctx = context.WithoutCancel(ctx)
	case "is not bound to an incarnation":
		return lease.WhileHeld(ctx, struct{ lease.Lease }{b.Session})
	}
	held, giveBack := b.Session.WhileHeld(ctx)
	switch b.bug {
	case "begins no work after its stop window":
		stops := func() { b.stopped.Store(b.stopped.Load() || lease.CodeOf(context.Cause(held)) == lease.ErrStopWindow) }
		context.AfterFunc(held, stops)
		if b.stopped.Load() {
			giveBack()
		}
	case "begins work in its stop window":
		if held.Err() != nil && b.Session.CheckAlive() {
			giveBack()
			return context.WithCancel(ctx)
		}
	case "stops its work without a reason":
		ctx, cancel := context.WithCancel(ctx)
		context.AfterFunc(held, cancel)
		return ctx, func() {
			giveBack()
			cancel()
		}
	case "stops its work as expired":
		ctx, cancel := context.WithCancelCause(ctx)
		context.AfterFunc(held, func() { cancel(&lease.LostError{Name: b.Name(), Token: b.last(), Reason: lease.ErrExpired}) })
		return ctx, func() {
			giveBack()
			cancel(nil)
		}
	case "has its stop window in name only":
		if at, ok := b.Session.LastConfirmed(); ok && time.Since(at) > 10*time.Second {
			giveBack()
		}
	case "waits for its work forever", "a release leaves a deferred release", "a hand-over waits for its work", "a close leaves a deferred release":
		b.contexts.Add(1)
		return held, func() {
			b.contexts.Add(-1)
			giveBack()
		}
	case "a bound context outlives a hand-over":
		ctx, cancel := context.WithCancelCause(ctx)
		context.AfterFunc(held, func() {
			if !b.gave.Load() {
				cancel(context.Cause(held))
			}
		})
		return ctx, func() {
			giveBack()
			cancel(nil)
		}
	case "a context that is given back was given back in time":
		ctx, cancel := context.WithCancel(held)
		return ctx, func() {
			cancel()
			giveBack()
		}
	case "counts a context twice that is given back twice":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bound = append(b.bound, giveBack)
		return held, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.bound) > 0 {
				b.bound[0]()
				b.bound = b.bound[1:]
			}
		}
	case "waits for the first of its work", "an acquire does not wait for the work of a lost incarnation":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bound = append(b.bound, giveBack)
		if b.bug == "an acquire does not wait for the work of a lost incarnation" {
			return held, giveBack
		}
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
		case "warns of the first incarnation only":
			last := b.last()
			b.mu.Lock()
			if b.warnedOf == "" {
				b.warnedOf = last
			}
			of := b.warnedOf
			b.mu.Unlock()
			if of == last {
				f(until)
			}
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
	case "a hand-over waits for its work":
		for n := 0; n < 10 && b.contexts.Load() > 0; n++ {
			_ = wait(ctx, time.Second)
		}
	case "hands over by releasing":
		return b.Session.Release(ctx)
	case "hands over behind a done context, and goes on":
		if ctx.Err() != nil {
			_, _ = b.over.Do(context.WithoutCancel(ctx), b.Name(), lease.Request{Action: lease.ActionChange, ID: b.ID(), Proposed: to})
			return ctx.Err()
		}
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
	if b.bug == "forgets a hand-over without an answer" && b.unknown.Load() {
		return lease.ErrNotPresent
	}
	if b.bug == "a hand-over to itself has no answer" && to == b.Session.ID() {
		<-ctx.Done()
		return ctx.Err()
	}
	if b.bug == "hands over to no ID" && to.IsZero() {
		return b.Session.Release(ctx)
	}
	b.gave.Store(true)
	err := b.Session.HandOver(ctx, to)
	b.unknown.Store(err != nil && !lease.CodeOf(err).Refusal())
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

// AcquireUnlessHeld is what session.TryRun calls.
func (b *buggySession) AcquireUnlessHeld(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := b.Session.AcquireUnlessHeld(ctx)
	return tok, ok || b.bug == "a refusal that is not certain is a grant" && err == nil, err
}

func (b *buggySession) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	b.acquires.Add(1)
	defer b.acquires.Done()
	if b.bug == "an acquire does not wait for the work of a lost incarnation" {
		b.mu.Lock()
		for _, giveBack := range b.bound {
			giveBack()
		}
		b.mu.Unlock()
	}
	switch b.bug {
	case "reads while it holds":
		if b.CheckAlive() {
			_, _ = lease.Inspect(ctx, b.over, b.Name())
		}
	case "reads when it acquires in its stop window":
		held, giveBack := b.Session.WhileHeld(ctx)
		if ctx.Err() == nil && held.Err() != nil && b.CheckAlive() {
			go func() { _, _ = lease.Inspect(ctx, b.over, b.Name()) }()
		}
		giveBack()
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
	b.refused.Store(!ok && err == nil)
	b.mu.Lock()
	b.token = tok
	b.mu.Unlock()
	return tok, ok, err
}

// last returns the token of the last acquire.
func (b *buggySession) last() lease.Token {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.token
}

// deferred reports whether work of a lost incarnation is still running.
func (b *buggySession) deferred() bool { return b.contexts.Load() > 0 && !b.Session.CheckAlive() }

func (b *buggySession) Close(ctx context.Context) error {
	switch b.bug {
	case "closes when its acquires are over":
		go func() {
			b.acquires.Wait()
			_ = b.Session.Close(context.WithoutCancel(ctx))
		}()
		<-ctx.Done()
		return ctx.Err()
	case "closes when its handlers have returned":
		for n := 0; n < 1000 && b.handling.Load() > 0; n++ {
			_ = wait(ctx, time.Second)
		}
	case "closes whatever its context":
		return b.Session.Close(context.WithoutCancel(ctx))
	case "a failed release ends its close":
		if err := b.Session.Release(ctx); err != nil {
			return err
		}
	case "tells a loss when it is closed":
		if !b.CheckAlive() {
			for _, f := range b.handlers {
				go f(lease.ErrExpired)
			}
		}
	case "a close leaves a deferred release":
		if b.deferred() {
			return nil
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
	case "does not wake up":
		if !b.CheckAlive() {
			<-ctx.Done()
		}
		return ctx.Err()
	case "a release ends the first of its waits", "waits though it was released":
		if b.waits.Add(1) == 1 && b.bug != "waits though it was released" {
			break
		}
		for ctx.Err() == nil && b.heldByAnother(ctx) {
			_ = wait(ctx, time.Second)
		}
		return ctx.Err()
	case "waits for signals whatever the time":
		if signals, err := b.watch(ctx); err == nil {
			for b.heldByAnother(ctx) {
				<-signals
			}
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
	case "reads before it watches":
		if !b.heldByAnother(ctx) {
			return nil
		}
		if signals, err := b.watch(ctx); err == nil {
			select {
			case <-signals:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	case "a wait returns the error of a read":
		if _, err := lease.Inspect(ctx, b.over, b.Name()); err != nil {
			return err
		}
	case "takes a lost watch for news":
		if signals, err := b.watch(ctx); err == nil && b.heldByAnother(ctx) {
			if _, open := <-signals; !open {
				_ = wait(ctx, time.Millisecond) // or it would never end
				return ctx.Err()
			}
		}
	case "waits when it is free":
		_ = wait(ctx, time.Hour)
	case "waits for its first read":
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = lease.Inspect(ctx, b.over, b.Name())
		}()
		select {
		case <-read:
		case <-ctx.Done():
			return ctx.Err()
		}
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
