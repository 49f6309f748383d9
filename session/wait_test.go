package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// blind is an authority without Watch.
type blind struct{ lease.Authority }

// waits returns how long a call of Wait takes, with a limit of one hour.
func (h *holder) waits(t testing.TB) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	began := time.Now()
	err := h.Wait(ctx)
	took := time.Since(began)
	if (err != nil) != (took == time.Hour) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wait: %v after %v", err, took)
	}
	return took
}

func crashed(o session.Options) *session.Options {
	o.Owner, o.TakeOver = "node-1", true
	return &o
}

// Wait returns when an Acquire may be granted, with a watch and without a watch. SPEC H21.
func TestWait(t *testing.T) {
	const polled = 10 * time.Second // RenewInterval
	theirs := func(d time.Duration) lease.Request {
		return lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Owner: "you", Duration: d}
	}
	for _, c := range []struct {
		name   string
		begin  func(t *testing.T, n *network, h *holder)
		watch  time.Duration // how long Wait waits with a watch
		most   time.Duration // how long Wait waits without a watch, at most
		option *session.Options
	}{
		{"not locked", func(*testing.T, *network, *holder) {}, 0, 0, nil},
		{"held by itself", func(t *testing.T, _ *network, h *holder) { h.acquire(t) }, 0, 0, nil},
		{"runs out", func(t *testing.T, n *network, _ *holder) { n.act(t, theirs(25*time.Second)) },
			25 * time.Second, 25 * time.Second, nil},
		{"released", func(t *testing.T, n *network, _ *holder) {
			n.act(t, theirs(lease.Infinite))
			time.AfterFunc(33*time.Second, func() { n.act(t, lease.Request{Action: lease.ActionRelease, ID: lease.ID{9}}) })
		}, 33 * time.Second, 33*time.Second + polled, nil},
		{"broken", func(t *testing.T, n *network, _ *holder) {
			n.act(t, theirs(lease.Infinite))
			time.AfterFunc(10*time.Second, func() { n.breaks(t, 7*time.Second) })
		}, 17 * time.Second, 17*time.Second + polled, nil},
		{"never free", func(t *testing.T, n *network, _ *holder) { n.act(t, theirs(lease.Infinite)) }, time.Hour, time.Hour, nil},
		{"given to it", func(t *testing.T, n *network, h *holder) {
			n.act(t, theirs(lease.Infinite))
			time.AfterFunc(10*time.Second, func() {
				n.act(t, lease.Request{Action: lease.ActionChange, ID: lease.ID{9}, Proposed: h.ID()})
			})
		}, 10 * time.Second, 10*time.Second + polled, nil},
		{"held by an ID that it owes", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.meet(lease.ActionRelease, failRequest)
			_ = h.Release(context.Background())
		}, 0, 0, nil},
		{"to be taken over", func(t *testing.T, n *network, _ *holder) {
			req := theirs(time.Hour)
			req.Owner = "node-1"
			n.act(t, req)
		}, 0, 0, crashed(session.Options{})},
		{"another's, for one that takes over", func(t *testing.T, n *network, _ *holder) { n.act(t, theirs(time.Minute)) },
			time.Minute, time.Minute, crashed(session.Options{})},
		{"its owner's, for one that does not take over", func(t *testing.T, n *network, _ *holder) {
			req := theirs(time.Minute)
			req.Owner = "node-1"
			n.act(t, req)
		}, time.Minute, time.Minute, &session.Options{Owner: "node-1"}},
		{"breaking, for one that takes over", func(t *testing.T, n *network, _ *holder) {
			req := theirs(time.Minute)
			req.Owner = "node-1"
			n.act(t, req)
			n.breaks(t, time.Minute)
		}, time.Minute, time.Minute, crashed(session.Options{})},
		{"every read fails", func(t *testing.T, n *network, _ *holder) { n.keep(lease.ActionRead, failRequest) },
			2500 * time.Millisecond, 2500 * time.Millisecond, nil}, // RetryDelay
		{"every read hangs", func(t *testing.T, n *network, _ *holder) { n.keep(lease.ActionRead, n.hang) },
			7500 * time.Millisecond, 7500 * time.Millisecond, nil}, // RequestTimeout and RetryDelay
		{"released meanwhile", func(t *testing.T, n *network, h *holder) {
			n.act(t, theirs(lease.Infinite))
			time.AfterFunc(10*time.Second, func() { h.release(t) })
		}, 10 * time.Second, 10 * time.Second, nil},
	} {
		for _, watch := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: "", false: ", without a watch"}[watch], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					if !watch {
						n.Authority = blind{n.Authority}
					}
					h := n.open(t, c.option)
					c.begin(t, n, h)
					took := h.waits(t)
					least, most := c.watch, c.watch
					if !watch {
						most = c.most
					}
					if c.name == "every read fails" || c.name == "every read hangs" {
						least -= 1250 * time.Millisecond // half of RetryDelay
					}
					if took < least || took > most {
						t.Errorf("waited %v, want from %v to %v", took, least, most)
					}
					if looks := n.count(lease.ActionRead); watch && looks > 3 {
						t.Errorf("looked %d times, with a watch", looks)
					}
				})
			})
		}
	}
}
