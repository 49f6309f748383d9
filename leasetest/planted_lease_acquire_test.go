package leasetest

import (
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

func (l *plainLease) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := l.AcquireWithToken(ctx)
	return ok, err
}

func (l *plainLease) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	if l.bug == "does not look at a done context" && ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	l.lock()
	if h := l.held; h != nil && l.alive(h) && l.bug != "asks again while holding" {
		defer l.unlock()
		return h.token, true, nil
	}
	superseded := l.superseded
	l.unlock()
	if l.bug != "its attempts overlap" {
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-superseded:
			return "", false, lease.ErrReleased
		}
	}
	free := func() {
		if l.bug != "its attempts overlap" {
			<-l.turn
		}
	}
	l.lock()
	if h := l.held; h != nil && l.alive(h) && l.bug != "asks again while holding" {
		defer l.unlock()
		free()
		return h.token, true, nil
	}
	l.unlock()
	if l.bug != "takes its own earlier ID for another's" {
		if err := l.settle(ctx); err != nil {
			free()
			return "", false, err
		}
	}
	return l.attempt(ctx, superseded, free)
}

func (l *plainLease) attempt(ctx context.Context, superseded chan struct{}, free func()) (lease.Token, bool, error) {
	id := l.newID()
	type answer struct {
		res  lease.Result
		sent time.Time
		err  error
	}
	answers := make(chan answer, 1)
	l.tasks.Go(func() {
		sent := l.clock.Now()
		res, err := l.do(context.WithoutCancel(ctx), lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: l.Owner, Duration: l.Duration})
		if l.bug == "counts belief from the answer" {
			sent = l.clock.Now()
		}
		answers <- answer{res, sent, err}
	})
	undo := func() { // in the background, holding the turn
		l.tasks.Go(func() {
			defer free()
			a := <-answers
			if l.bug == "lets a late acquire win" && a.err == nil {
				l.begin(ctx, id, a.res, a.sent)
				return
			}
			if l.bug != "leaves orphans" && (a.err == nil || !lease.CodeOf(a.err).Refusal()) {
				l.undo(ctx, id, a.err != nil)
			}
		})
	}
	done := ctx.Done()
	if l.bug == "waits for the authority, not for its context" {
		done = nil
	}
	if l.bug == "release does not reach an acquire under way" {
		superseded = nil
	}
	var a answer
	select {
	case a = <-answers:
	case <-done:
		if l.bug == "undoes before the attempt has settled" {
			l.tasks.Go(func() {
				l.undo(ctx, id, false)
				free()
			})
			return "", false, ctx.Err()
		}
		undo()
		return "", false, ctx.Err()
	case <-superseded:
		undo()
		return "", false, lease.ErrReleased
	}
	switch code := lease.CodeOf(a.err); {
	case a.err == nil:
		if !l.clock.Now().Before(l.believe(a.sent, a.res.MinRemaining)) && l.bug != "believes what is over" {
			answers <- a
			undo()
			if l.bug == "tells a late grant as a loss" {
				l.tell(slices.Clone(l.handlers), lease.ErrExpired)
			}
			return "", false, lease.ErrExpired
		}
		tok := l.begin(ctx, id, a.res, a.sent)
		free()
		return tok, true, nil
	case code == lease.ErrHeldByOther, code == lease.ErrBreaking, code != 0 && l.bug == "takes every refusal for held":
		free()
		switch l.bug {
		case "takes held for an error":
			return "", false, a.err
		case "takes held for granted":
			return l.begin(ctx, id, a.res, a.sent), true, nil
		case "tells a failed acquire as a loss":
			l.tell(slices.Clone(l.handlers), a.err)
		case "waits for its turn":
			<-l.clock.After(l.timeout())
		case "waits for its own duration":
			if granted := a.res.Record.Until.Add(-a.res.Record.Duration); a.res.Now.Sub(granted) > l.Duration {
				_, _ = l.do(ctx, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
				return l.AcquireWithToken(ctx)
			}
		}
		return "", false, nil
	case l.bug == "takes an error for held":
		free()
		return "", false, nil
	}
	if l.bug == "forgets what it may have acquired" {
		free()
		return "", false, a.err
	}
	answers <- a
	undo()
	return "", false, a.err
}

// undo releases an ID that nobody believes in. If its acquire may still arrive, and would
// stay forever, both are written over it.
func (l *plainLease) undo(ctx context.Context, id lease.ID, inDoubt bool) {
	if l.bug != "undoes under the caller's context" {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: id})
	if lease.CodeOf(err) == lease.ErrIDMismatch && inDoubt && l.Duration == lease.Infinite && l.bug != "leaves an infinite orphan" {
		if _, err = l.do(ctx, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: l.Owner, Duration: l.Duration}); err == nil {
			_, err = l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: id})
		}
	}
	if err != nil && !lease.CodeOf(err).Refusal() {
		l.lock()
		l.pendingReleases = append(l.pendingReleases, id)
		l.unlock()
	}
}

// settle releases the IDs that must be released, in its turn.
func (l *plainLease) settle(ctx context.Context) error {
	l.lock()
	pendingReleases := l.pendingReleases
	l.unlock()
	for _, id := range pendingReleases {
		req := lease.Request{Action: lease.ActionRelease, ID: id}
		if l.bug == "breaks what it releases" {
			req = lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}
		}
		_, err := l.do(ctx, req)
		if err != nil && !lease.CodeOf(err).Refusal() {
			return err
		}
		l.lock()
		l.pendingReleases = slices.DeleteFunc(l.pendingReleases, func(d lease.ID) bool { return d == id })
		l.unlock()
	}
	return nil
}
