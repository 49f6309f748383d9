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

// An ID was acquired by two requests, of which the first is still in the network. However the
// ID ends: if the first is granted then, the ID does not exclude its own holder. SPEC H1, H3, H7.
func TestRequestThatOutlivesItsID(t *testing.T) {
	const arrives = 24 * time.Hour
	for _, c := range []struct {
		name string
		end  func(t *testing.T, n *network, h *holder) // acquires, too
		lost lease.Code
	}{
		{"released", func(t *testing.T, _ *network, h *holder) {
			h.acquire(t)
			h.release(t)
		}, 0},
		{"revoked", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.lose(t, h)
		}, lease.ErrBroken},
		{"broken while the authority does not answer", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.breaks(t, 30*time.Second)
			time.Sleep(15 * time.Second)
			n.keep(lease.ActionRenew, failRequest)
			time.Sleep(time.Minute)
			n.keep(lease.ActionRenew, nil)
		}, lease.ErrBroken},
		{"released by an operator", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.act(t, lease.Request{Action: lease.ActionRelease, ID: h.ID()})
			time.Sleep(time.Minute)
		}, lease.ErrIDMismatch},
		{"changed by an operator", func(t *testing.T, n *network, h *holder) {
			h.acquire(t)
			n.act(t, lease.Request{Action: lease.ActionChange, ID: h.ID(), Proposed: lease.ID{9}})
			time.Sleep(time.Minute)
			n.act(t, lease.Request{Action: lease.ActionRelease, ID: lease.ID{9}})
		}, lease.ErrIDMismatch},
		{"handed over", func(t *testing.T, n *network, h *holder) {
			receiver := n.open(t, nil)
			h.acquire(t)
			h.handOver(t, receiver.ID())
			receiver.acquire(t)
			receiver.release(t)
		}, 0},
		{"abandoned", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, slow(0, 2*time.Second))
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("acquire: %v, %v", ok, err)
			}
		}, 0},
		{"granted too late", func(t *testing.T, n *network, h *holder) {
			n.meet(lease.ActionAcquire, sure(time.Millisecond, time.Second))
			h.unknown(t, lease.ErrExpired)
		}, 0},
	} {
		for _, d := range []time.Duration{0, lease.Infinite} {
			t.Run(c.name+map[time.Duration]string{lease.Infinite: ", infinite"}[d], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: d})
					first := h.ID()
					n.meet(lease.ActionAcquire, late(arrives))
					h.unknown(t, errNet)
					began := time.Now()
					c.end(t, n, h)
					if c.lost != 0 {
						h.lostOnce(t, c.lost)
					}
					time.Sleep(arrives - time.Since(began))
					if synctest.Wait(); n.record(t).State != lease.Leased || n.record(t).ID != first || h.ID() == first {
						t.Fatalf("the record is %+v, the next ID %v", n.record(t), h.ID())
					}
					if took := h.waits(t); took != 0 {
						t.Errorf("waited %v", took)
					}
					h.unknown(t, nil)
					if synctest.Wait(); n.record(t).State != lease.Available {
						t.Fatalf("the record is %+v", n.record(t))
					}
					h.acquire(t)
				})
			})
		}
	}
}
