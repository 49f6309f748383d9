package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A holder that learns of a break keeps the lease for as long as the lease is certainly locked. The
// holder calls its OnBreaking handlers, and then loses the lease with the Reason ErrBroken.
// SPEC H13.
func TestBreakingWithGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, next := n.open(t, &session.Options{Duration: time.Minute}), n.open(t, nil)
		h.acquire(t)
		tok := h.Token()
		n.breaks(t, 40*time.Second)
		over := time.Now().Add(40 * time.Second)
		if len(h.breaks()) != 0 {
			t.Error("told before it was asked")
		}
		time.Sleep(20 * time.Second) // RenewInterval
		notified := h.breaks()
		if len(notified) != 1 || notified[0].After(over) || over.Sub(notified[0]) > 100*time.Millisecond {
			t.Fatalf("told %v of a break until %v", notified, over)
		}
		if u := until(t, h); !u.Equal(notified[0]) {
			t.Errorf("U is %v, told %v", u, notified[0])
		}
		next.refused(t)
		time.Sleep(time.Until(notified[0]) - 1)
		if h.alive(t, true); h.Token() != tok || n.record(t).State != lease.Breaking {
			t.Errorf("token %v; %+v", h.Token(), n.record(t))
		}
		time.Sleep(time.Nanosecond)
		lost := h.lostOnce(t, lease.ErrBroken)
		if lost.Token != tok {
			t.Errorf("lost %v, held %v", lost.Token, tok)
		}
		if len(h.breaks()) != 1 {
			t.Errorf("told %v", h.breaks())
		}
		time.Sleep(100 * time.Millisecond)
		next.acquire(t)
		if n.count(lease.ActionRelease) != 0 {
			t.Error("what is broken was released")
		}
	})
}

// A Release during the grace period ends the break early, and is not a loss. SPEC H13, H15.
func TestReleaseWhileBreaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, next := n.open(t, nil), n.open(t, nil)
		h.acquire(t)
		n.breaks(t, 20*time.Second)
		time.Sleep(10 * time.Second)
		if len(h.breaks()) != 1 {
			t.Fatalf("told %v", h.breaks())
		}
		h.release(t)
		next.acquire(t)
		time.Sleep(time.Hour)
		h.notLost(t)
	})
}

// If a break is shortened, the Session calls the OnBreaking handlers again, with the new end.
// SPEC H13.
func TestShortenedBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: time.Minute, RenewInterval: 5 * time.Second, RequestTimeout: time.Second})
		h.acquire(t)
		n.breaks(t, 50*time.Second)
		time.Sleep(10 * time.Second)
		n.breaks(t, 20*time.Second)
		over := time.Now().Add(20 * time.Second)
		time.Sleep(10 * time.Second)
		notified := h.breaks()
		if len(notified) != 2 || !notified[1].Before(notified[0]) || notified[1].After(over) {
			t.Fatalf("told %v of a break until %v", notified, over)
		}
		if u := until(t, h); !u.Equal(notified[1]) {
			t.Errorf("U is %v", u)
		}
		time.Sleep(10 * time.Second)
		h.lostOnce(t, lease.ErrBroken)
	})
}

// If a break ends later than the belief, the OnBreaking handlers get the end of the belief.
// SPEC H13.
func TestBreakLongerThanTheBelief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		u := until(t, h)
		n.act(t, lease.Request{Action: lease.ActionBreak}) // the break ends when the remaining time of the lease has passed
		time.Sleep(10 * time.Second)
		if notified := h.breaks(); len(notified) != 1 || !notified[0].Equal(u) {
			t.Errorf("told %v, U was %v", notified, u)
		}
		time.Sleep(time.Until(u))
		h.lostOnce(t, lease.ErrBroken)
	})
}

// An infinite lease gets a time U when it is broken. SPEC H13.
func TestBreakOfAnInfiniteLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		h.acquire(t)
		n.breaks(t, time.Minute)
		over := time.Now().Add(time.Minute)
		time.Sleep(10 * time.Second)
		notified := h.breaks()
		if len(notified) != 1 || notified[0].After(over) || over.Sub(notified[0]) > 200*time.Millisecond {
			t.Fatalf("told %v of a break until %v", notified, over)
		}
		time.Sleep(time.Until(notified[0]))
		h.lostOnce(t, lease.ErrBroken)
	})
}

// If the authority does not report the end of a break, or the break has ended, the lease is lost at
// once. SPEC H13.
func TestBreakWithoutGrace(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
	}{
		{"over at once", nil},
		{"nothing is shown", refuse(lease.ErrBroken, lease.Result{})},
		{"no end is told", func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, err := send(ctx)
			res.MinRemaining = 0
			return res, err
		}},
		{"less is left than the margin", func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, err := send(ctx)
			res.MinRemaining = time.Millisecond
			return res, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.breaks(t, map[bool]time.Duration{true: 0, false: 20 * time.Second}[c.fault == nil])
				n.keep(lease.ActionRenew, c.fault)
				for n.count(lease.ActionRenew) == 0 {
					h.alive(t, true)
					time.Sleep(100 * time.Millisecond)
				}
				h.lostOnce(t, lease.ErrBroken)
				if len(h.breaks()) != 0 {
					t.Errorf("told %v", h.breaks())
				}
			})
		})
	}
}

// During a break, the Session remembers the end of the break even if the authority does not answer.
// SPEC H13, H15.
func TestBreakingThenSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.breaks(t, 20*time.Second)
		time.Sleep(10 * time.Second)
		n.keep(lease.ActionRenew, n.hang)
		u := until(t, h)
		time.Sleep(time.Until(u) - 1)
		h.alive(t, true)
		time.Sleep(time.Nanosecond)
		h.lostOnce(t, lease.ErrBroken)
	})
}

// An elapsing is the client of an authority that reports how long a lease stays locked, but not
// when it ends. The client counts the reported time from the answer, and counts MinRemaining from
// the sending.
type elapsing struct{ *network }

func (e elapsing) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := e.network.Do(ctx, name, req)
	left, now := res.MaxRemaining(), time.Now().UTC()
	if !res.Record.Until.IsZero() {
		res.Record.Until = now.Add(left)
	}
	if !res.Now.IsZero() {
		res.Now = now
	}
	return res, err
}

// A break is shortened by as much time as the answer took. Counted from the answer, the break seems
// to end later than before. The Session believes only the time that is certain. SPEC H13, A5.
func TestShortenedBreakWithASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		s, err := session.New(elapsing{n}, name, &session.Options{Duration: time.Minute, RenewInterval: 5 * time.Second, RequestTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		n.breaks(t, 30*time.Second)
		time.Sleep(6 * time.Second)
		if u, _ := s.Until(); time.Until(u) > 24*time.Second || time.Until(u) < 23*time.Second {
			t.Fatalf("U is in %v", time.Until(u))
		}
		n.breaks(t, 20*time.Second) // 20 s, not 24 s
		over := time.Now().Add(20 * time.Second)
		n.keep(lease.ActionRenew, slow(0, 4500*time.Millisecond))
		time.Sleep(time.Until(over) - time.Second)
		if !s.CheckAlive() {
			t.Error("lost long before its end")
		}
		time.Sleep(time.Second)
		if s.CheckAlive() {
			t.Error("believes in a lease that is over")
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
