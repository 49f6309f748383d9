package leasetest

import (
	"context"
	"errors"
	"fmt"
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
			l.held = h
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
	l.held = h
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
	next := l.clock.After(interval)
	if l.bug == "does not renew" {
		next = nil
	}
	answers := make(chan plainRenewal, 100)
	flying := false
	for {
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
			if !(flying && l.bug == "waits for a renewal that hangs") {
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
			flying = false
			if l.renewed(h, a) {
				next = l.clock.After(max(0, interval-l.clock.Now().Sub(a.sent)))
			} else {
				next = l.clock.After(l.timeout() / 2)
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
	if l.bug != "an answer reaches whoever holds" && target != h {
		target = nil
	}
	l.unlock()
	if target == nil {
		return true
	}
	switch {
	case a.err == nil,
		code.Refusal() && shown && r.State == lease.Leased && l.bug != "takes every refusal for a loss":
		l.lock()
		target.until = l.believe(a.sent, a.res.MinRemaining)
		l.unlock()
	case !code.Refusal():
		if l.bug == "loses at the first error" {
			l.lose(h, lease.ErrExpired)
		}
		return false
	case shown && r.State == lease.Breaking && a.res.MinRemaining > 0 && l.bug != "gives up at once when it breaks":
		if l.bug == "does not see a break" {
			return true
		}
		l.lock()
		h.breaking = true
		if end := l.believe(a.sent, a.res.MinRemaining); end.Before(h.until) && l.bug != "keeps a break to the end of its duration" {
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

// late releases what a renewal holds that was carried out after the end.
func (l *plainLease) late(h *plainHolding, answers <-chan plainRenewal) {
	select {
	case a := <-answers:
		switch l.bug {
		case "an answer reaches whoever holds":
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
