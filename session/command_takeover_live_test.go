package session_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// Two live processes take over from each other, and the Again of both always returns true. Only one
// process keeps the lease. In the other process, Run returns ErrTakenOver and does not call Again.
// Both processes believe that they hold the lease for no longer than a read and a renewal take.
// SPEC H8, H13a.
func TestTwoLiveProcessesTakeOver(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency time.Duration // the latency in one direction
		watches bool
		most    time.Duration // the longest time for which both processes may believe
	}{
		{"fast", 0, true, 0},
		{"slow", 500 * time.Millisecond, true, 4 * time.Second}, // a renewal in flight, a read and a renewal, and a tenth of an interval
		{"without a watch", 500 * time.Millisecond, false, 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(nil)
				open := func() (*network, *holder) {
					var a lease.Authority = lease.NewAuthority(store)
					if !c.watches {
						a = blind{a}
					}
					n := over(a)
					for _, a := range []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionChange, lease.ActionRelease, lease.ActionRead} {
						n.keep(a, slow(c.latency, c.latency))
					}
					n.holders = byte(time.Now().Second()) + 1 // so that no two holders draw the same IDs
					return n, n.open(t, &session.Options{Owner: "worker-1", TakeOver: true})
				}
				var terms, asked [2]atomic.Int64
				run := func(i int, h *holder, ctx context.Context) chan error {
					ended := make(chan error, 1)
					go func() {
						ended <- session.Run(ctx, h, func(ctx context.Context, _ lease.Token) error {
							terms[i].Add(1)
							<-ctx.Done()
							return nil
						}, &session.RunOptions{Again: func(error) bool { asked[i].Add(1); return true }})
					}()
					return ended
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, a := open()
				first := run(0, a, ctx)
				time.Sleep(25 * time.Second) // a renewal may be in flight
				_, b := open()
				second := run(1, b, ctx)
				for !b.CheckAlive() {
					time.Sleep(time.Millisecond)
				}
				both := time.Now()
				var err error
				select {
				case err = <-first:
				case <-time.After(time.Minute):
					t.Fatal("both go on")
				}
				if took := time.Since(both); took > c.most {
					t.Errorf("both believed for up to %v, want at most %v", took, c.most)
				}
				if !errors.Is(err, lease.ErrTakenOver) || !errors.Is(err, lease.ErrLost) || asked[0].Load() != 0 {
					t.Errorf("the first: %v, asked %d times", err, asked[0].Load())
				}
				time.Sleep(time.Hour)
				if !b.CheckAlive() || terms[0].Load() != 1 || terms[1].Load() != 1 {
					t.Errorf("the second is alive: %v; terms %d and %d", b.CheckAlive(), terms[0].Load(), terms[1].Load())
				}
				cancel()
				if err := <-second; err != nil {
					t.Errorf("the second: %v", err)
				}
			})
		})
	}
}
