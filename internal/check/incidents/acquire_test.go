package incidents

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// TestAcquire re-enacts acquires that came late, were abandoned, or had no clear outcome.
//
// SPEC H1, H2, H3, H4, H6, H7, M4.
func TestAcquire(t *testing.T) {
	play(t, []incident{
		{"pathosDev/actor-ts#142", "an acquire that had timed out won later, and was believed: two sides of a partition survived", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.Detach(s, leasefault.DelayRequest(2*time.Second)))), nil)
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			ok, err := h.Acquire(ctx)
			s.want(!ok && errors.Is(err, context.DeadlineExceeded), "the caller's own deadline, not %v, %v", ok, err)
			s.after(1500 * time.Millisecond) // the store has granted the lease
			s.want(!h.CheckAlive(), "a late win is not believed")
			s.after(time.Second)
			s.want(!s.record().State.Locked(), "a late win is undone, not %+v", s.record())
		}},
		{"pathosDev/actor-ts#600", "a release while an acquire was in flight did nothing, and the lease stayed", func(s *stage) {
			gate := leasefault.NewGate()
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, gate.HoldAnswer)), nil)
			result := make(chan error, 1)
			go func() {
				ok, err := h.Acquire(s.ctx)
				s.want(!ok, "the acquire is superseded")
				result <- err
			}()
			<-gate.Reached() // the acquire is granted, and its answer is on the way
			released := make(chan error, 1)
			go func() { released <- h.Release(s.ctx) }()
			s.want(errors.Is(<-result, lease.ErrReleased), "the acquire ends at once, as released")
			gate.Open()
			s.want(<-released == nil, "the release says that nothing is left")
			s.want(!s.record().State.Locked(), "nothing is left, not %+v", s.record())
		}},
		{"akkadotnet/Akka.Management#3402", "success was reported before the write that confirmed it, which then lost a race", func(s *stage) {
			rival := s.hold(s.auth, nil)
			race := leasefault.ScriptStore(s.store, leasefault.Nth(1, leasefault.Swap, leasefault.Before(func() { s.take(rival) })))
			h := s.hold(lease.NewAuthority(race), nil)
			ok, err := h.Acquire(s.ctx)
			s.want(!ok && err == nil, "a certain no, not %v, %v", ok, err)
			s.want(rival.CheckAlive() && !h.CheckAlive(), "only the rival believes")
		}},
		{"apache/pekko-management#911", "the write was tried again without bound: the lease was granted after its caller had been told no", func(s *stage) {
			down := errors.New("connection refused")
			var requests atomic.Int32
			h := s.hold(s.script(leasefault.Always(lease.ActionAcquire, func(context.Context, *leasefault.Call) error {
				requests.Add(1)
				return down
			})), nil)
			ok, err := h.Acquire(s.ctx)
			s.want(!ok && errors.Is(err, down), "unknown, with the cause, not %v, %v", ok, err)
			s.after(10 * time.Minute)
			s.want(requests.Load() == 1, "one request a call, not %d", requests.Load())
		}},
		{"GreptimeTeam/greptimedb#7670", "a cancelled task leaked the lock that it had just got; no leader could be elected", func(s *stage) {
			ctx, cancel := context.WithCancel(s.ctx)
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.After(cancel))), nil)
			_, _ = h.Acquire(ctx)
			s.want(h.Release(ctx) != nil || !s.record().State.Locked(), "a release that says done is done")
			s.after(time.Second)
			s.want(!s.record().State.Locked(), "nothing leaks, not %+v", s.record())
		}},
		{"hazelcast/hazelcast#7343", "an operation timed out, its lock was granted without a holder, and stayed forever", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.LoseAnswer)), &session.Options{Duration: lease.Infinite})
			ok, err := h.Acquire(s.ctx)
			s.want(!ok && err != nil, "unknown, not %v, %v", ok, err)
			tok := s.take(h) // the acquire proposes the same ID again, so the authority grants it
			s.want(tok.Validate() == nil && h.CheckAlive(), "held after asking again")
			s.want(h.Release(s.ctx) == nil && !s.record().State.Locked(), "and free again")
		}},
		{"etcd-io/etcd#10111", "Lock returned success although its context had closed and the key was gone", func(s *stage) {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			h := s.hold(s.auth, nil)
			ok, err := h.Acquire(ctx)
			s.want(!ok && errors.Is(err, context.Canceled), "the context's error, not %v, %v", ok, err)
		}},
		{"matrixone#25790", "a context that was cancelled already still acquired", func(s *stage) {
			var requests atomic.Int32
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			h := s.hold(s.script(leasefault.Always(leasefault.Any, leasefault.Before(func() { requests.Add(1) }))), nil)
			_, _ = h.Acquire(ctx)
			s.want(requests.Load() == 0, "no request, not %d", requests.Load())
		}},
		{"mike-marcacci/node-redlock#296", "a lock was returned that had expired already", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(4*time.Second))),
				&session.Options{Duration: 4 * time.Second, RequestTimeout: 1900 * time.Millisecond, RenewInterval: 10 * time.Millisecond, RetryDelay: time.Millisecond, StopWindow: -1})
			ok, err := h.Acquire(s.ctx)
			s.want(!ok && err != nil, "an error, not %v, %v", ok, err)
			s.want(!h.CheckAlive(), "nothing is believed")
		}},
		{"madelson/DistributedLock PR#228", "an acquire was applied but timed out, and its lock was left behind", func(s *stage) {
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.LoseAnswer)), nil)
			_, err := h.Acquire(ctx)
			s.want(errors.Is(err, context.DeadlineExceeded), "the context's error, not %v", err)
			s.after(6 * time.Second) // the attempt ends at its own time-out, and the Session undoes it
			s.want(!s.record().State.Locked(), "the orphan is released by its ID, not %+v", s.record())
		}},
		{"bsm/redislock#93", "the fencing token was to be minted apart from the grant, so that it could be of another one", func(s *stage) {
			var mu sync.Mutex
			seen := map[lease.Token]bool{}
			var all sync.WaitGroup
			for range 20 {
				h := s.hold(s.auth, nil)
				all.Go(func() {
					tok, err := session.AcquireWait(s.ctx, h, nil)
					s.want(err == nil && tok == s.record().Token(), "the token of the record, in one swap: %v, %v", tok, err)
					mu.Lock()
					defer mu.Unlock()
					s.want(!seen[tok], "a token only once")
					seen[tok] = true
					_ = h.Release(s.ctx)
				})
			}
			all.Wait()
		}},
		{"sliceworkz/eventstore#176", "an owner that came back after a gap had its old token again", func(s *stage) {
			h := s.hold(s.auth, &session.Options{Owner: "same"})
			first := s.take(h)
			_ = h.Release(s.ctx)
			second := s.take(h)
			s.want(second.Compare(first) > 0, "newer than %s, not %s", first, second)
			s.after(10 * time.Minute)
			s.want(h.Token() == second, "the same through renewals")
		}},
		{"Azure-Samples/cosmos-db-design-patterns#91", "the document with the token counter had a time to live: tokens began again at 1", func(s *stage) {
			h := s.hold(s.auth, nil)
			last := s.take(h)
			_ = h.Release(s.ctx)
			for i := range 50_000 { // far more names than the store remembers
				other := name + strings.Repeat("x", 1+i%7) + time.Duration(i).String()
				id := lease.ID{1}
				if _, err := s.auth.Do(s.ctx, other, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Second}); err != nil {
					s.Fatal(err)
				}
				if _, err := s.auth.Do(s.ctx, other, lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
					s.Fatal(err)
				}
			}
			s.want(s.take(h).Compare(last) > 0, "newer than %s, though the record was forgotten", last)
		}},
		{"kubernetes/kubernetes#61151", "two processes with the same identity both led", func(s *stage) {
			a := s.hold(s.auth, &session.Options{Owner: "node-1"})
			b := s.hold(s.auth, &session.Options{Owner: "node-1"})
			s.take(a)
			ok, err := b.Acquire(s.ctx)
			s.want(!ok && err == nil, "an owner is only a label: a certain no, not %v, %v", ok, err)
		}},
		{"AzureLease in Akka.Management", "a second acquire was answered with the first one's cached answer, after the lease had been lost", func(s *stage) {
			var cut atomic.Bool
			h := s.hold(s.script(leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.LoseRequest))), nil)
			first := s.take(h)
			cut.Store(true)
			s.after(term)
			s.want(!h.CheckAlive(), "lost")
			rival := s.hold(s.auth, nil)
			s.take(rival)
			cut.Store(false)
			s.after(10 * time.Second)
			ok, err := h.Acquire(s.ctx)
			s.want(!ok && err == nil, "asked again: a certain no, not %v, %v (token %s)", ok, err, first)
		}},
	})
}
