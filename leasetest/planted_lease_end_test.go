package leasetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

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
	close(h.stop)
	expired := reason == lease.ErrExpired && l.bug != "leaves what a late renewal holds"
	if expired && l.bug != "forgets what it has lost" {
		l.pendingReleases = append(l.pendingReleases, h.id)
	}
	handlers := slices.Clone(l.handlers)
	if l.bug == "calls handlers with its lock held" {
		for _, f := range handlers {
			f.f(&lease.LostError{Name: l.Name, Token: h.token, Reason: reason})
		}
		handlers = nil
	}
	var err error = &lease.LostError{Name: l.Name, Token: h.token, Reason: reason}
	l.lastLoss = err
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
		l.tell(handlers, err)
	}
	l.tell(handlers, err)
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

func (l *plainLease) tell(handlers []*plainHandler, err error) {
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
	h := &plainHandler{f}
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
			l.tell(slices.Clone(l.handlers), lease.ErrReleased)
		}
	}
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
