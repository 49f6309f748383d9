package incidents

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// TestTime re-enacts incidents with clocks that differed, stopped or were set, and with writes that
// only the resource can refuse.
//
// SPEC H9, H10, A2, A7, M13, R2, G1, G2, S4.
func TestTime(t *testing.T) {
	play(t, []incident{
		{"kubernetes/client-go leaderelection", "the time to live was counted from the answer, so that a slow answer made the leader believe too long", func(s *stage) {
			h := s.hold(s.script(leasefault.Nth(1, lease.ActionAcquire, leasefault.DelayAnswer(4*time.Second))), nil)
			s.take(h)
			until, _ := h.Until()
			s.want(until.Before(s.record().Until), "U at %v is before the end at the authority, %v", until, s.record().Until)
		}},
		{"kubernetes/kubernetes#47671", "a contender judged the leader by its own, shorter duration, and there were two", func(s *stage) {
			long := s.hold(s.auth, &session.Options{Duration: 10 * time.Minute})
			s.take(long)
			short := s.hold(s.auth, &session.Options{Duration: 10 * time.Second})
			s.after(time.Minute)
			ok, err := short.Acquire(s.ctx)
			s.want(!ok && err == nil, "the record's duration counts: a certain no, not %v, %v", ok, err)
		}},
		{"johanhaleby/occurrent#659", "the expiry was judged by another clock than the one that had written it", func(s *stage) {
			ahead, behind := leasefault.NewClock(), leasefault.NewClock()
			ahead.Step(time.Hour)
			behind.Step(-time.Hour)
			a := s.hold(s.auth, &session.Options{Clock: ahead})
			b := s.hold(s.auth, &session.Options{Clock: behind})
			s.take(a)
			s.after(5 * time.Minute)
			ok, _ := b.Acquire(s.ctx)
			s.want(a.CheckAlive() && !ok, "clocks hours apart change nothing")
			_ = a.Release(s.ctx)
			s.take(b)
			s.after(5 * time.Minute)
			ok, _ = a.Acquire(s.ctx)
			s.want(b.CheckAlive() && !ok, "nor the other way round")
		}},
		{"pathosDev/actor-ts#598", "a record with an enormous duration pinned the lease for everybody", func(s *stage) {
			hostile := memory.New(&memory.Options{Limits: lease.Limits{MaxDuration: time.Minute}})
			store := leasefault.Tamper(hostile, func(_ string, r *lease.Record) {
				if r.State == lease.Leased && r.Owner == "hostile" && time.Until(r.Until) > 30*time.Second {
					r.Until = r.Until.AddDate(1000, 0, 0)
				}
			})
			auth := lease.NewAuthority(store)
			id := lease.ID{1}
			if _, err := auth.Do(s.ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "hostile", Duration: time.Minute}); err != nil {
				s.Fatal(err)
			}
			h := s.hold(auth, nil)
			began := time.Now()
			_, err := session.AcquireWait(s.ctx, h, nil)
			s.want(err == nil && time.Since(began) < 2*time.Minute, "it counts as a minute from first sight, not %v (%v)", time.Since(began), err)
		}},
		{"valkey-io/valkey#2651", "the store's clock was set forward: a lock of 30 s was taken again after 0.3 s, and both wrote", func(s *stage) {
			clock := leasefault.NewClock()
			auth := lease.NewAuthority(leasefault.Skew(s.store, clock))
			a, b := s.hold(auth, nil), s.hold(auth, nil)
			var guard fencing.Guard
			old := s.take(a)
			_ = guard.Advance(old)
			clock.Step(40 * time.Second) // no holder can notice this step
			s.take(b)
			_ = guard.Advance(b.Token())
			err := guard.Do(old, func() error { s.Error("a stale write"); return nil })
			s.want(errors.Is(err, fencing.ErrStale), "the belief is void, as stated; the guard is not: %v", err)
		}},
		{"etcd-io/etcd#9395", "a change of leader gave every lease its full time again", func(s *stage) {
			store, restart := leasefault.Restartable(s.store, leasefault.ResetTerm)
			auth := lease.NewAuthority(store)
			a, b := s.hold(auth, nil), s.hold(auth, nil)
			s.take(a)
			s.after(5 * time.Second)
			until, _ := a.Until()
			restart()
			after, _ := a.Until()
			s.want(after.Equal(until), "a holder believes what was granted, not what was added")
			_ = a.Release(s.ctx)
			s.take(b)
		}},
		{"etcd-io/etcd#11457", "Jepsen: a lock is not a lock; a paused client wrote after it had lost it", func(s *stage) {
			clock := leasefault.NewClock()
			a, b := s.hold(s.auth, &session.Options{Clock: clock}), s.hold(s.auth, nil)
			var guard fencing.Guard
			data := "empty"
			old := s.take(a)
			_ = guard.Advance(old)
			alive := a.CheckAlive() // the holder checks its lease
			clock.Pause()           // and is paused before it writes
			tok, err := session.AcquireWait(s.ctx, b, nil)
			s.want(err == nil && alive, "the other acquires: %v", err)
			_ = guard.Advance(tok)
			_ = guard.Do(tok, func() error { data = "b"; return nil })
			err = guard.Do(old, func() error { data = "a"; return nil })
			s.want(errors.Is(err, fencing.ErrStale) && data == "b", "refused by the resource: %v, %q", err, data)
			clock.Resume()
		}},
		{"redisson/redisson#775", "the holder of a lock without end was dead, and nothing could free it", func(s *stage) {
			if _, err := s.auth.Do(s.ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Owner: "dead", Duration: lease.Infinite}); err != nil {
				s.Fatal(err)
			}
			s.after(1000 * time.Hour)
			h := s.hold(s.auth, nil)
			ok, _ := h.Acquire(s.ctx)
			s.want(!ok, "it does not end by itself")
			left, err := lease.Break(s.ctx, s.auth, name, lease.Grace(time.Minute))
			s.want(err == nil && left == time.Minute, "anybody may break it: %v, %v", left, err)
			_, err = session.AcquireWait(s.ctx, h, nil)
			s.want(err == nil, "and then it is free: %v", err)
		}},
		{"kubernetes/kubernetes#62120", "there was no way to cede leadership to another without a gap", func(s *stage) {
			a, b := s.hold(s.auth, nil), s.hold(s.auth, nil)
			old := s.take(a)
			to := b.ID()
			s.want(a.HandOver(s.ctx, to) == nil, "handed over")
			third := s.hold(s.auth, nil)
			ok, _ := third.Acquire(s.ctx)
			s.want(!ok, "no other holder comes between")
			s.want(s.take(b).Compare(old) > 0, "with a newer token")
		}},
	})
}

// TestMachineClock re-enacts two incidents with times that have a monotonic clock reading.
// TestMachineClock uses no synctest bubble, because times in a bubble have no monotonic reading.
// The test does not need to wait.
//
// SPEC H10, S4.
func TestMachineClock(t *testing.T) {
	t.Run("golang/go#24595", func(t *testing.T) {
		t.Log("There: the monotonic clock stood still while the machine slept: after a night the lock was still believed")
		clock := &machine{}
		h, err := session.New(lease.NewAuthority(memory.New(nil)), name, &session.Options{Clock: clock, Duration: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := h.Acquire(t.Context()); !ok || !h.CheckAlive() {
			t.Fatal(ok, err)
		}
		clock.ahead.Store(int64(8 * time.Hour))
		if h.CheckAlive() {
			t.Error("the wall clock is ahead of the monotonic one, and is not counted")
		}
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("ActiveMQ ARTEMIS-2213", func(t *testing.T) {
		t.Log("There: setting the machine's clock ended a lock early, or kept it too long")
		for _, step := range []time.Duration{8 * time.Hour, -8 * time.Hour} {
			clock := &machine{}
			auth := lease.NewAuthority(memory.New(&memory.Options{Clock: clock}))
			id := lease.ID{1}
			if _, err := auth.Do(t.Context(), name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Hour}); err != nil {
				t.Fatal(err)
			}
			clock.ahead.Store(int64(step))
			res, err := lease.Inspect(t.Context(), auth, name)
			if left := res.MaxRemaining(); err != nil || left > time.Hour || left < 59*time.Minute {
				t.Errorf("after a step of %v: %v left, %v", step, left, err)
			}
		}
	})
}

// A machine is a clock with the monotonic readings of package time, and a wall clock that can be
// ahead of package time.
type machine struct{ ahead atomic.Int64 }

func (m *machine) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Now returns a time with a changed wall clock and an unchanged monotonic reading, like a time that
// a program reads after the computer has slept. Now has to change the memory of the time, because
// package time has no function for such a change. The seconds of the wall clock are in the bits of
// the first word from bit 30 on.
func (m *machine) Now() time.Time {
	now := time.Now()
	(*[3]uint64)(unsafe.Pointer(&now))[0] += uint64(m.ahead.Load()/int64(time.Second)) << 30
	return now
}
