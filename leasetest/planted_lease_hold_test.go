package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// begin starts an incarnation.
func (l *plainLease) begin(ctx context.Context, id lease.ID, res lease.Result, sent time.Time) lease.Token {
	h := &plainHolding{id: id, token: res.Record.Token(), until: l.believe(sent, res.MinRemaining), stop: make(chan struct{})}
	switch l.bug {
	case "believes a moment later":
		l.tasks.Go(func() {
			time.Sleep(time.Nanosecond)
			l.lock()
			l.held, l.unreported = h, nil
			l.unlock()
		})
		return h.token
	case "counts its own tokens":
		h.token = lease.TokenOf(l.next.Add(1) & 0xff)
	case "writes tokens without zeros":
		h.token = lease.Token(fmt.Sprint("v", res.Record.Epoch))
	case "gives every acquire the same token":
		h.token = lease.TokenOf(7)
	}
	l.lock()
	defer l.unlock()
	if old := l.held; old != nil {
		close(old.stop)
	}
	l.held, l.unreported = h, nil
	h.breaking = l.broke && l.bug == "remembers the break of an earlier incarnation"
	if l.bug == "renews only the first incarnation" && l.lastLoss == errSeen {
		return h.token
	}
	l.lastLoss = errSeen
	life := context.Background()
	if l.bug == "lives in the context of its acquire" {
		life = ctx
	}
	l.tasks.Go(func() { l.keep(life, h) })
	return h.token
}

var errSeen = errors.New("an incarnation has begun before")

type plainRenewal struct {
	res  lease.Result
	sent time.Time
	err  error
}

// keep renews an incarnation until it ends.
func (l *plainLease) keep(life context.Context, h *plainHolding) {
	interval := min(l.Duration, time.Minute) / 3
	if l.bug != "renews on the dot" {
		interval -= l.jitter(interval / 10)
	}
	first := interval
	if l.bug != "renews on the dot" && l.bug != "spreads first renewals over a tenth" {
		first = l.jitter(interval)
	}
	next := l.clock.After(first)
	if l.bug == "does not renew" {
		next = nil
	}
	answers := make(chan plainRenewal, 100)
	flying, renewed, erred := false, false, 0
	for {
		h.renewing.Store(flying)
		l.lock()
		left := h.until.Sub(l.clock.Now())
		over := l.held != h
		l.unlock()
		if over && l.bug != "goes on renewing after a release" {
			if flying && l.bug != "an answer revives what ended" {
				l.tasks.Go(func() { l.late(h, answers) })
			} else if flying {
				l.tasks.Go(func() { l.revive(h, answers) })
			}
			return
		}
		if left <= 0 && !over {
			if !(flying && (l.bug == "waits for a renewal that hangs" || l.bug == "waits for a later renewal that hangs" && renewed)) {
				l.lose(h, h.over())
				continue
			}
			left = time.Hour
		}
		end := l.clock.After(max(left, 0))
		stop := h.stop
		if l.bug == "goes on renewing after a release" {
			stop, end = nil, nil
		}
		select {
		case <-l.quit:
			return
		case <-stop:
		case <-life.Done():
			l.lose(h, lease.ErrExpired)
		case <-end:
		case <-next:
			next = l.clock.After(interval)
			if l.bug == "its renewals overlap" {
				next = l.clock.After(l.timeout() / 2)
			} else if flying {
				continue
			}
			flying = true
			l.tasks.Go(func() {
				sent := l.clock.Now()
				req := lease.Request{Action: lease.ActionRenew, ID: h.id}
				if l.bug == "renews by acquiring" {
					req = lease.Request{Action: lease.ActionAcquire, Proposed: h.id, Owner: l.Owner, Duration: l.Duration}
				}
				res, err := l.do(life, req)
				if l.bug == "counts belief from the answer" {
					sent = l.clock.Now()
				}
				answers <- plainRenewal{res, sent, err}
			})
		case a := <-answers:
			if !over && !l.clock.Now().Before(h.until) && l.bug != "believes an answer that comes after the end" {
				l.lose(h, h.over())
				answers <- a
				continue
			}
			flying, renewed = false, true
			if l.renewed(h, a) {
				next = l.clock.After(max(0, interval-l.clock.Now().Sub(a.sent)))
			} else if next = l.clock.After(l.timeout() / 2); l.bug == "renews no more after three errors" {
				if erred++; erred == 3 {
					next = nil
				}
			}
		}
	}
}

// renewed takes note of the answer to a renewal, and reports whether there was one.
func (l *plainLease) renewed(h *plainHolding, a plainRenewal) bool {
	code, r := lease.CodeOf(a.err), a.res.Record
	shown := !a.res.Now.IsZero() && r.ID == h.id
	l.lock()
	target := l.held
	if l.bug != "an answer reaches any later holder" && target != h {
		target = nil
	}
	l.unlock()
	if target == nil {
		return true
	}
	switch {
	case a.err == nil,
		code.Refusal() && shown && r.State == lease.Leased && l.bug != "takes every refusal for a loss":
		until := l.believe(a.sent, a.res.MinRemaining)
		l.lock()
		if a.err == nil || until.After(target.until) || l.bug == "a refusal shortens its belief" {
			target.until = until
		}
		l.unlock()
	case !code.Refusal():
		if l.bug == "loses at the first error" || code != 0 && l.bug == "takes an error with a code for a refusal" {
			l.lose(h, lease.ErrExpired)
		}
		return false
	case shown && r.State == lease.Breaking && a.res.MinRemaining > 0 && l.bug != "gives up at once when it breaks":
		if l.bug == "does not see a break" {
			return true
		}
		l.lock()
		h.breaking = true
		if end := l.believe(a.sent, a.res.MinRemaining); l.bug == "believes the last answer about a break" || end.Before(h.until) && l.bug != "keeps a break to the end of its duration" {
			h.until = end
		}
		l.unlock()
	case l.bug == "does not see a break" && code == lease.ErrBroken:
	case l.bug == "takes a refusal for an error":
		return false
	default:
		if shown && (r.State == lease.Breaking || r.State == lease.Broken) {
			code = lease.ErrBroken
		}
		l.lose(target, code)
	}
	return true
}

// late waits for a renewal that is still in flight at the end of the holding. If that renewal may
// have extended the lease, late releases the lease.
func (l *plainLease) late(h *plainHolding, answers <-chan plainRenewal) {
	select {
	case a := <-answers:
		switch l.bug {
		case "an answer reaches any later holder":
			l.renewed(h, a)
		case "an answer prolongs whatever is held":
			l.lock()
			if l.held != nil {
				l.held.until = l.believe(l.clock.Now(), a.res.MinRemaining)
			}
			l.unlock()
		}
		if (a.err == nil || !lease.CodeOf(a.err).Refusal()) && l.bug != "leaves what a late renewal holds" {
			l.undo(context.Background(), h.id, false)
		}
	case <-l.quit:
	}
}

func (l *plainLease) revive(h *plainHolding, answers <-chan plainRenewal) {
	select {
	case a := <-answers:
		if a.err == nil {
			l.lock()
			h.until, l.held = l.believe(a.sent, a.res.MinRemaining), h
			l.unlock()
		}
	case <-l.quit:
	}
}

// over is why an incarnation is lost whose time is over.
func (h *plainHolding) over() lease.Code {
	if h.breaking {
		return lease.ErrBroken
	}
	return lease.ErrExpired
}

// lose ends an incarnation as lost.
func (l *plainLease) lose(h *plainHolding, reason lease.Code) {
	l.lock()
	if l.held != h {
		l.unlock()
		return
	}
	l.held = nil
	l.broke = h.breaking
	close(h.stop)
	expired := reason == lease.ErrExpired && l.bug != "leaves what a late renewal holds"
	if expired && l.bug != "forgets what it has lost" {
		l.pendingReleases = append(l.pendingReleases, h.id)
	}
	handlers := slices.Clone(l.handlers)
	if reason == lease.ErrExpired && l.bug != "tells a handler that registered after the end" {
		handlers = slices.DeleteFunc(handlers, func(f *plainHandler) bool { return !f.from.Before(h.until) })
	}
	if l.bug == "calls handlers with its lock held" {
		for _, f := range handlers {
			f.f(&lease.LostError{Name: l.Name, Token: h.token, Reason: reason})
		}
		handlers = nil
	}
	var err error = &lease.LostError{Name: l.Name, Token: h.token, Reason: reason}
	l.lastLoss, l.unreported = err, err
	l.unlock()
	switch l.bug {
	case "tells a bare code":
		err = reason
	case "tells every loss as expired":
		err = &lease.LostError{Name: l.Name, Token: h.token, Reason: lease.ErrExpired}
	case "tells no loss":
		handlers = nil
	case "tells a loss only once in its life":
		l.lock()
		l.handlers = nil
		l.unlock()
	case "tells a loss twice":
		l.notify(handlers, err)
	}
	l.notify(handlers, err)
	if expired {
		l.tasks.Go(func() {
			select {
			case l.turn <- struct{}{}:
				_ = l.settle(context.Background())
				<-l.turn
			case <-l.quit:
			}
		})
	}
}

func (l *plainLease) notify(handlers []*plainHandler, err error) {
	call := func(h *plainHandler) {
		defer func() { _ = recover() }()
		h.f(err)
	}
	if l.bug == "calls handlers one after the other" {
		l.tasks.Go(func() {
			for _, h := range handlers {
				call(h)
			}
		})
		return
	}
	if l.bug == "a panic ends the telling" {
		l.tasks.Go(func() {
			defer func() { _ = recover() }()
			for _, h := range handlers {
				h.f(err)
			}
		})
		return
	}
	for _, h := range handlers {
		l.tasks.Go(func() { call(h) })
	}
	if l.bug == "tells who registers meanwhile" {
		l.tasks.Go(func() {
			time.Sleep(time.Nanosecond)
			l.lock()
			late := slices.DeleteFunc(slices.Clone(l.handlers), func(h *plainHandler) bool { return slices.Contains(handlers, h) })
			l.unlock()
			for _, h := range late {
				call(h)
			}
		})
	}
}

func (l *plainLease) OnLost(f func(error)) (stop func() bool) {
	l.lock()
	defer l.unlock()
	h := &plainHandler{f, l.clock.Now()}
	l.handlers = append(slices.Clone(l.handlers), h)
	if lost := (*lease.LostError)(nil); l.bug == "tells a handler what happened before it" && errors.As(l.lastLoss, &lost) {
		l.tasks.Go(func() { f(l.lastLoss) })
	}
	return func() bool {
		l.lock()
		defer l.unlock()
		i := slices.Index(l.handlers, h)
		if i < 0 || l.bug == "does not unregister" {
			return i >= 0
		}
		l.handlers = slices.Delete(slices.Clone(l.handlers), i, i+1)
		return true
	}
}

func (l *plainLease) Release(ctx context.Context) error {
	err := l.giveUp(ctx)
	l.lock()
	defer l.unlock()
	lost := l.unreported
	l.unreported = nil
	if err == nil && lost != nil && l.bug != "a release hides the loss before it" {
		return lost
	}
	return err
}

func (l *plainLease) giveUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil && l.bug == "releases nothing under a done context" {
		return err
	}
	l.released.Add(1)
	l.lock()
	if h := l.held; h != nil && !l.alive(h) && l.bug != "a release at the end hides the loss" {
		l.unlock()
		l.lose(h, h.over())
		l.lock()
	}
	close(l.superseded)
	l.superseded = make(chan struct{})
	h := l.held
	if h != nil && l.bug != "believes until the release is answered" && l.bug != "believes on if the release errs" {
		l.held = nil
		close(h.stop)
	}
	if h != nil {
		l.pendingReleases = append(l.pendingReleases, h.id)
		if l.bug == "tells a release as a loss" {
			l.notify(slices.Clone(l.handlers), lease.ErrReleased)
		}
	}
	l.pendingReleases = append(l.pendingReleases, l.mayArrive...)
	if l.bug == "leaves its release to time" {
		l.pendingReleases = nil
	}
	idle := len(l.pendingReleases) == 0 && len(l.turn) == 0
	l.unlock()
	if l.bug == "releases what it does not hold" && h == nil {
		_, err := l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: l.newID()})
		return err
	}
	if idle {
		return nil
	}
	done := make(chan error, 1)
	l.tasks.Go(func() {
		select {
		case l.turn <- struct{}{}:
		case <-l.quit:
			return
		}
		defer func() { <-l.turn }()
		err := l.settle(context.Background())
		if h != nil && (l.bug == "believes until the release is answered" || l.bug == "believes on if the release errs" && err == nil) {
			l.lock()
			if l.held == h {
				l.held = nil
				close(h.stop)
			}
			l.unlock()
		}
		if l.bug == "hides the error of a release" {
			l.lock()
			l.pendingReleases = nil
			l.unlock()
			err = nil
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
