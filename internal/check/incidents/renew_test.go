package incidents

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// TestRenew re-enacts renewals that failed, hung, or were granted without an answer.
//
// SPEC H11, H12, H15, H19, H22.
func TestRenew(t *testing.T) {
	play(t, []incident{
		{"akkadotnet/Akka.Management#3404", "one failed heartbeat gave the lease up: 96 seconds of outage", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRenew, leasefault.FailRequest)), nil)
			count, _ := s.losses(h)
			s.take(h)
			s.after(5 * time.Minute)
			s.want(h.CheckAlive() && count.Load() == 0, "held on, not lost %d times", count.Load())
		}},
		{"akkadotnet/Akka.Management#3418", "a heartbeat timed out but was written; the next one conflicted with it and gave the lease up", func(s *stage) {
			store := leasefault.ScriptStore(s.store, leasefault.Nth(2, leasefault.Swap, leasefault.LoseAnswer))
			h := s.hold(lease.NewAuthority(store), nil)
			count, _ := s.losses(h)
			tok := s.take(h)
			s.after(5 * time.Minute)
			s.want(h.CheckAlive() && h.Token() == tok && count.Load() == 0, "held on, not lost %d times", count.Load())
		}},
		{"hashicorp/consul#912", "one failed renewal ended the session, with most of its time left", func(s *stage) {
			h := s.hold(s.script(leasefault.First(3, lease.ActionRenew, leasefault.FailAnswer)), nil)
			s.take(h)
			s.after(5 * time.Minute)
			s.want(h.CheckAlive(), "tried again until one is answered")
		}},
		{"home-operations/kopiur#324", "the time-out of one attempt was the whole budget: a slow server meant 90 losses in six days", func(s *stage) {
			_, err := session.New(s.auth, name, &session.Options{Duration: 15 * time.Second, RequestTimeout: 14 * time.Second})
			field := new(lease.FieldError)
			s.want(errors.As(err, &field), "refused at construction, not %v", err)
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRenew, leasefault.LoseRequest)), nil)
			s.take(h)
			s.after(term)
			s.want(h.CheckAlive(), "a request that is never answered leaves time for another")
		}},
		{"kubernetes/kubernetes#65090", "the client had no time-out: a hung request blocked every later renewal", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(2, lease.ActionRenew, leasefault.LoseRequest)), nil)
			s.take(h)
			s.after(5 * time.Minute)
			s.want(h.CheckAlive(), "the request is given up, and the next one is granted")
		}},
		{"madelson/DistributedLock#133", "the renewal hung, so that the loss was never noticed", func(s *stage) {
			letGo := make(chan struct{})
			h := s.hold(ignoring(s.auth, lease.ActionRenew, letGo), nil)
			count, last := s.losses(h)
			s.take(h)
			s.after(term)
			s.want(!h.CheckAlive() && count.Load() == 1, "lost once, at the deadline, not %d times", count.Load())
			s.want(errors.Is(last.Load(), lease.ErrExpired), "for the reason expired, not %v", last.Load())
			close(letGo)
		}},
		{"kuberhealthy/kuberhealthy#1533", "after a single loss no process contended again until the process was restarted", func(s *stage) {
			var cut atomic.Bool
			h := s.hold(s.script(leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.FailRequest))), nil)
			ctx, cancel := context.WithCancel(s.ctx)
			var terms atomic.Int32
			done := make(chan error, 1)
			go func() {
				done <- session.Run(ctx, h, func(ctx context.Context, _ lease.Token) error {
					terms.Add(1)
					<-ctx.Done()
					return context.Cause(ctx)
				}, &session.RunOptions{Again: func(error) bool { return true }})
			}()
			s.after(time.Minute)
			cut.Store(true)
			s.after(time.Minute)
			cut.Store(false)
			s.after(time.Minute)
			s.want(terms.Load() == 2, "a second term, not %d", terms.Load())
			cancel()
			<-done
		}},
		{"tristanls/lease#1", "a renewal of one holding went on after its release and was applied to the next", func(s *stage) {
			gate := leasefault.NewGate()
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRenew, gate.HoldRequest)), nil)
			count, _ := s.losses(h)
			first := s.take(h)
			<-gate.Reached()
			_ = h.Release(s.ctx)
			second := s.take(h)
			gate.Open()
			s.after(5 * time.Minute)
			s.want(h.CheckAlive() && h.Token() == second && second != first && count.Load() == 0, "the second holding is untouched")
		}},
		{"cirello-io/dynamolock#14", "after a quick release and acquire no heartbeat was started", func(s *stage) {
			h := s.hold(s.auth, nil)
			s.take(h)
			_ = h.Release(s.ctx)
			s.take(h)
			s.after(time.Hour)
			s.want(h.CheckAlive(), "renewed, however soon it was taken again")
		}},
		{"dv/redis-semaphore#175", "renewing a lock that had expired took it, though another had had it in between", func(s *stage) {
			h := s.hold(s.auth, nil)
			s.take(h)
			id := h.ID()
			if _, err := lease.Break(s.ctx, s.auth, name, lease.Grace(0)); err != nil {
				s.Fatal(err)
			}
			rival := s.hold(s.auth, nil)
			s.take(rival)
			_ = rival.Release(s.ctx)
			_, err := s.auth.Do(s.ctx, name, lease.Request{Action: lease.ActionRenew, ID: id})
			s.want(errors.Is(err, lease.ErrIDMismatch), "refused, not %v", err)
			s.after(time.Minute)
			s.want(!h.CheckAlive(), "lost for good")
		}},
		{"etcd-io/etcd 3.4 LeaseKeepAlive", "a keep-alive of a dead lease was answered as success with no time left", func(s *stage) {
			h := s.hold(nothingLeft{s.auth}, nil)
			count, _ := s.losses(h)
			s.take(h)
			s.after(term)
			s.want(!h.CheckAlive() && count.Load() == 1, "a grant that makes nothing certain is a loss, told once, not %d times", count.Load())
		}},
		{"redisson/redisson#7272", "the watchdog went on renewing after unlock", func(s *stage) {
			var renewals atomic.Int32
			h := s.hold(s.script(leasefault.Always(lease.ActionRenew, leasefault.Before(func() { renewals.Add(1) }))), nil)
			s.take(h)
			s.after(time.Minute)
			_ = h.Release(s.ctx)
			before := renewals.Load()
			s.after(time.Hour)
			s.want(before > 0 && renewals.Load() == before, "no renewal after the release, not %d", renewals.Load()-before)
		}},
		{"cirello-io/dynamolock#15", "the heartbeat leaked a goroutine for every lock", func(s *stage) {
			for range 100 {
				h := s.hold(s.auth, nil)
				s.take(h)
				s.after(time.Minute)
				_ = h.Release(s.ctx)
			} // the bubble does not end while a goroutine is left
		}},
	})
}

// nothingLeft answers every renewal with success, but with no time left.
type nothingLeft struct{ lease.Authority }

func (a nothingLeft) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionRenew {
		res.MinRemaining = 0
	}
	return res, err
}
