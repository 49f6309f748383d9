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

// Two live processes of one owner take over from each other, and Again of both always returns true. Only
// one keeps the lease. In the other, Run returns ErrTakenOver and does not call Again. Both believe for no
// longer than a renewal in flight, a read and a renewal take, or without a watch a RenewInterval more.
// SPEC H8, H13a.
func TestTwoLiveProcessesTakeOver(t *testing.T) {
	const latency = 500 * time.Millisecond // in one direction
	for watches, most := range map[bool]time.Duration{true: 4 * time.Second, false: 11 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked atomic.Int64
			run := func(number byte) (*holder, chan error) {
				var a lease.Authority = lease.NewAuthority(store)
				if !watches {
					a = blind{a}
				}
				n := over(a)
				for _, a := range []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionChange, lease.ActionRelease, lease.ActionRead} {
					n.keep(a, slow(latency, latency))
				}
				n.holders = number // so that no two holders draw the same IDs
				h, ended := n.open(t, &session.Options{Owner: "worker-1", TakeOver: true}), make(chan error, 1)
				go func() {
					ended <- session.Run(ctx, h, func(ctx context.Context, _ lease.Token) error { <-ctx.Done(); return nil },
						&session.RunOptions{Again: func(error) bool { asked.Add(1); return true }})
				}()
				return h, ended
			}
			_, first := run(1)
			time.Sleep(25 * time.Second) // a renewal may be in flight
			b, second := run(2)
			for !b.CheckAlive() {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(most)
			select {
			case err := <-first:
				if !errors.Is(err, lease.ErrTakenOver) || !errors.Is(err, lease.ErrLost) {
					t.Errorf("the first: %v", err)
				}
			default:
				t.Fatalf("both believe for more than %v", most)
			}
			time.Sleep(time.Hour)
			if !b.CheckAlive() || asked.Load() != 0 {
				t.Errorf("the second is alive: %v; Again was called %d times", b.CheckAlive(), asked.Load())
			}
			cancel()
			if err := <-second; err != nil {
				t.Errorf("the second: %v", err)
			}
		})
	}
}
