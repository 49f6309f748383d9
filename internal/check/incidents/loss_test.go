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

// TestLoss re-enacts losses that were noticed late, twice or never, and incidents with callbacks
// and releases.
//
// SPEC H14, H15, H16, H17, H18, H20, N1, N2, N4, S6.
func TestLoss(t *testing.T) {
	play(t, []incident{
		{"hashicorp/consul#18271", "a partitioned holder went on for minutes after its lock had gone to another", func(s *stage) {
			var cut atomic.Bool
			h := s.hold(s.script(leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.LoseRequest))), nil)
			count, _ := s.losses(h)
			s.take(h)
			s.after(time.Minute)
			cut.Store(true)
			rival := s.hold(s.auth, nil)
			tok, err := session.AcquireWait(s.ctx, rival, nil)
			s.want(err == nil && tok != "", "the rival gets it: %v", err)
			s.want(!h.CheckAlive() && count.Load() == 1, "by then the loss is known, and told %d times", count.Load())
			cut.Store(false)
		}},
		{"etcd-io/etcd#6127", "there was no way to learn that a mutex was no longer held", func(s *stage) {
			h := s.hold(s.auth, nil)
			s.take(h)
			work, done := lease.WhileHeld(s.ctx, h)
			defer done()
			_, _ = lease.Break(s.ctx, s.auth, name, lease.Grace(0))
			<-work.Done()
			s.want(errors.Is(context.Cause(work), lease.ErrBroken), "the context ends with the reason, not %v", context.Cause(work))
		}},
		{"pathosDev/actor-ts#937", "checkAlive returned a flag that only a timer cleared: after a pause it was still true", func(s *stage) {
			clock := leasefault.NewClock()
			h := s.hold(s.auth, &session.Options{Clock: clock})
			s.take(h)
			clock.Pause() // no timer of the holder fires
			s.after(term)
			s.want(!h.CheckAlive(), "the clock is compared at the call")
			clock.Resume()
		}},
		{"kubernetes/client-go#1187", "OnStoppedLeading was called for a candidate that had never led", func(s *stage) {
			rival := s.hold(s.auth, nil)
			s.take(rival)
			h := s.hold(s.auth, nil)
			count, _ := s.losses(h)
			_, _ = h.Acquire(s.ctx)
			ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
			defer cancel()
			_, _ = session.AcquireWait(ctx, h, nil)
			_ = h.Close(s.ctx)
			s.after(time.Hour)
			s.want(count.Load() == 0, "never told, not %d times", count.Load())
		}},
		{"kubernetes/kubernetes#139991", "the lock was released while the work under it was still running", func(s *stage) {
			h, rival := s.hold(s.auth, nil), s.hold(s.auth, nil)
			ctx, cancel := context.WithCancel(s.ctx)
			var working atomic.Bool
			done := make(chan error, 1)
			go func() {
				done <- session.Run(ctx, h, func(ctx context.Context, _ lease.Token) error {
					working.Store(true)
					<-ctx.Done()
					time.Sleep(2 * time.Minute) // the work needs longer to stop than a lease lasts
					working.Store(false)
					return nil
				}, nil)
			}()
			s.after(time.Minute)
			cancel()
			if _, err := session.AcquireWait(s.ctx, rival, nil); err != nil {
				s.Fatal(err)
			}
			s.want(!working.Load(), "the work has stopped when another gets the lease")
			s.want(<-done == nil, "a clean end")
		}},
		{"kubernetes/kubernetes#23731", "the release failed, and the callback that should have stopped the work never came", func(s *stage) {
			h := s.hold(s.script(leasefault.First(1, lease.ActionRelease, leasefault.FailRequest)), nil)
			s.take(h)
			work, done := h.WhileHeld(s.ctx)
			defer done()
			s.want(h.Release(s.ctx) != nil, "the release says that it failed")
			s.want(!h.CheckAlive() && errors.Is(context.Cause(work), lease.ErrReleased), "the work ends all the same")
			s.want(h.Release(s.ctx) == nil && !s.record().State.Locked(), "and calling again gives it up")
		}},
		{"ray-project/ray PR#63773", "the watchdog and the failed renewal both reported the loss", func(s *stage) {
			for offset := -2 * time.Millisecond; offset <= 2*time.Millisecond; offset += time.Millisecond / 4 {
				gate := leasefault.NewGate()
				h := s.hold(s.script(leasefault.Nth(1, lease.ActionRenew, leasefault.Chain(gate.HoldAnswer, leasefault.FailAnswer))), nil)
				count, _ := s.losses(h)
				s.take(h)
				until, _ := h.Until()
				s.after(time.Until(until) + offset) // shortly before or after the deadline
				_, _ = lease.Break(s.ctx, s.auth, name, lease.Grace(0))
				gate.Open()
				s.after(term)
				s.want(count.Load() == 1, "told once with the answer at %v, not %d times", offset, count.Load())
				_ = h.Close(s.ctx)
			}
		}},
		{"operator-framework/java-operator-sdk PR#1615", "a callback that called back into the elector deadlocked", func(s *stage) {
			h := s.hold(s.auth, nil)
			done := make(chan struct{})
			h.OnLost(func(error) {
				defer close(done)
				h.CheckAlive()
				h.OnLost(func(error) {})()
				h.Token()
				_ = h.Release(s.ctx)
				_, _ = h.Acquire(s.ctx)
				_ = h.HandOver(s.ctx, lease.ID{7})
				_ = h.Close(s.ctx)
			})
			s.take(h)
			_, _ = lease.Break(s.ctx, s.auth, name, lease.Grace(0))
			<-done
		}},
		{"akka/akka LeaseActor", "a callback that threw took the actor down that would have told the others", func(s *stage) {
			h := s.hold(s.auth, nil)
			h.OnLost(func(error) { panic("in a handler; this is logged") })
			count, _ := s.losses(h)
			s.take(h)
			_, _ = lease.Break(s.ctx, s.auth, name, lease.Grace(0))
			s.after(term)
			s.want(count.Load() == 1, "the other handler is told, not %d times", count.Load())
		}},
		{"googleforgames/open-match#1578", "the release was sent with the request's context, which was done: the lock stayed until it expired", func(s *stage) {
			ctx, cancel := context.WithCancel(s.ctx)
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRelease, leasefault.DelayAnswer(time.Millisecond))), nil)
			s.take(h)
			cancel()
			err := h.Release(ctx)
			s.want(errors.Is(err, context.Canceled), "the caller is told that he did not wait: %v", err)
			s.after(time.Second)
			s.want(!s.record().State.Locked(), "but it is released")
		}},
		{"madelson/DistributedLock#132", "a release whose answer was lost was sent again, met a 409, and threw", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRelease, leasefault.FailAnswer)), nil)
			s.take(h)
			s.want(h.Release(s.ctx) != nil, "the first outcome is unknown")
			s.want(h.Release(s.ctx) == nil, "the second is: nothing to give up")
		}},
		{"etcd-io/etcd#22082", "a stale unlock that was sent again deleted the next holder's lock", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionRelease, leasefault.Repeat(s, leasefault.DelayRequest(5*time.Second)))), nil)
			s.take(h)
			_ = h.Release(s.ctx)
			tok := s.take(h)
			s.after(time.Minute)
			s.want(h.CheckAlive() && s.record().Token() == tok, "the copy names a dead ID, and does nothing")
		}},
		{"hashicorp/consul#9469", "all contenders asked again at the same instant", func(s *stage) {
			var requests atomic.Int32
			var released time.Time
			counted := s.script(leasefault.Always(lease.ActionAcquire, leasefault.Before(func() {
				if !released.IsZero() && time.Since(released) < time.Millisecond {
					requests.Add(1)
				}
			})))
			h := s.hold(s.auth, nil)
			s.take(h)
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			for range 50 {
				c := s.hold(counted, nil)
				go func() { _, _ = session.AcquireWait(ctx, c, nil) }()
			}
			s.after(10 * time.Second)
			released = time.Now()
			_ = h.Release(s.ctx)
			s.after(time.Second)
			s.want(s.record().State.Locked(), "one of them has it")
			s.want(requests.Load() < 10, "they come spread out, not %d in a millisecond", requests.Load())
		}},
		{"akka/akka-management#910", "two long names were cut to the same one, and two singletons shared a lease", func(s *stage) {
			long := string(make64('a'))
			for _, pair := range [][2]string{{long + "1", long + "2"}, {"A", "a"}, {"a_b", "a.b"}, {"a", "a "}} {
				a, errA := s.store.Lease(pair[0], nil)
				b, errB := s.store.Lease(pair[1], nil)
				if errA != nil || errB != nil {
					s.Fatal(errA, errB)
				}
				s.take(a)
				s.take(b)
				_, _ = a.Close(s.ctx), b.Close(s.ctx)
			}
		}},
		{"pathosDev/actor-ts#596", "an owner that was left out compared equal to every other: exclusion was off", func(s *stage) {
			a, b := s.hold(s.auth, nil), s.hold(s.auth, &session.Options{})
			s.take(a)
			ok, err := b.Acquire(s.ctx)
			s.want(!ok && err == nil && a.Owner() != b.Owner() && a.Owner() != "", "unique by default: %q, %q", a.Owner(), b.Owner())
			_, err = session.New(s.auth, "", nil)
			s.want(errors.Is(err, lease.ErrName), "a name that is left out is refused, not %v", err)
			_, err = session.New(s.auth, name, &session.Options{Duration: -time.Second})
			s.want(errors.Is(err, lease.ErrOption), "a duration below nothing is refused, not %v", err)
		}},
	})
}

func make64(r byte) []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = r
	}
	return b
}
