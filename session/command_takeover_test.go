package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

func crashed(o session.Options) *session.Options {
	o.Owner, o.TakeOver = "node-1", true
	return &o
}

// With TakeOver, the Session changes the ID of a lease of the same owner, and acquires the lease.
// The authority refuses the renewals of the earlier incarnation, whose token is older. The earlier
// holder does not take the lease back. SPEC H8.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		old := n.open(t, &session.Options{Owner: "node-1"})
		h := n.open(t, crashed(session.Options{}))
		first := old.acquire(t)
		second := h.acquire(t)
		if second.Compare(first) <= 0 {
			t.Errorf("token %v after %v", second, first)
		}
		if r := n.record(t); r.ID != h.ID() || r.Owner != "node-1" || r.Token() != second {
			t.Errorf("the record is %+v", r)
		}
		got := n.requests(lease.ActionAcquire, lease.ActionChange)
		if len(got) != 4 || got[2].Action != lease.ActionChange || got[3].Action != lease.ActionAcquire {
			t.Fatalf("sent %+v", got)
		}
		if got[2].Proposed != h.ID() || got[3].Proposed != h.ID() {
			t.Errorf("sent %+v, want the ID %v", got[2:], h.ID())
		}
		time.Sleep(time.Hour)
		old.lostOnce(t, lease.ErrTakenOver)
		h.alive(t, true)
		h.notLost(t)
	})
}

// Without TakeOver, two Sessions with the same owner exclude each other. With TakeOver, a Session
// takes no lease from another owner. SPEC H8.
func TestNoTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
		n.open(t, &session.Options{Owner: "node-1"}).refused(t)
		n.open(t, &session.Options{Owner: "node-2", TakeOver: true}).refused(t)
		if n.count(lease.ActionChange) != 0 {
			t.Error("changed")
		}
	})
}

// A Session does not take over a lease that is breaking. If a break comes between the change and
// the acquire of a take-over, the Acquire is not granted. SPEC H8.
func TestTakeOverMeetsABreak(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
			n.breaks(t, 5*time.Second)
			n.open(t, crashed(session.Options{})).refused(t)
			if n.count(lease.ActionChange) != 0 {
				t.Error("changed")
			}
		})
	})
	t.Run("before the change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
			n.meet(lease.ActionChange, first(func() { n.breaks(t, 5*time.Second) }))
			h := n.open(t, crashed(session.Options{}))
			h.refused(t)
			if h.release(t); n.count(lease.ActionRelease) != 0 {
				t.Error("released what was certainly not changed")
			}
		})
	})
	t.Run("before the acquire", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
			h := n.open(t, crashed(session.Options{}))
			n.meet(lease.ActionChange, then(func() { n.breaks(t, 5*time.Second) }))
			h.unknown(t, lease.ErrBreaking)
			if synctest.Wait(); n.record(t).State != lease.Available {
				t.Errorf("not released: %+v", n.record(t))
			}
			h.acquire(t)
		})
	})
}

// If the authority hides IDs, a Session cannot take a lease over, and the error says why. SPEC H8.
func TestTakeOverNeedsIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
		h := n.open(t, crashed(session.Options{}))
		n.keep(lease.ActionAcquire, hideOthers)
		h.unknown(t, errors.ErrUnsupported)
		n.open(t, &session.Options{Owner: "node-2", TakeOver: true}).refused(t)
		n.keep(lease.ActionAcquire, refuse(lease.ErrHeldByOther, lease.Result{}))
		h.unknown(t, errors.ErrUnsupported)
		h.alive(t, false)
	})
}

// Even if one step of a take-over fails, the next Acquire or Release finds the changed lease.
// SPEC H8, H3.
func TestTakeOverFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(n *network)
		is     error
		locked bool // whether the lease is locked by the new ID
	}{
		{"the change fails", func(n *network) { n.meet(lease.ActionChange, failRequest) }, errNet, false},
		{"the change's answer fails", func(n *network) { n.meet(lease.ActionChange, failAnswer) }, errNet, true},
		{"the change is not known", func(n *network) { n.meet(lease.ActionChange, refuse(lease.ErrAction, lease.Result{})) }, lease.ErrAction, false},
		{"the acquire fails", func(n *network) { n.meet(lease.ActionAcquire, nil, failRequest) }, errNet, true},
		{"the acquire's answer fails", func(n *network) { n.meet(lease.ActionAcquire, nil, failAnswer) }, errNet, true},
		{"no newer token", func(n *network) { n.meet(lease.ActionAcquire, nil, refuse(lease.ErrEpochLimit, lease.Result{})) }, lease.ErrEpochLimit, false},
	} {
		for _, end := range []string{"acquire", "release"} {
			t.Run(c.name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
					h := n.open(t, crashed(session.Options{}))
					c.fault(n)
					h.unknown(t, c.is)
					if r := n.record(t); (r.ID == h.ID()) != c.locked {
						t.Errorf("the record is %+v", r)
					}
					if end == "acquire" {
						h.acquire(t)
						return
					}
					h.release(t)
					synctest.Wait()
					if r := n.record(t); (r.State == lease.Available) != (c.locked || c.is == lease.ErrEpochLimit) {
						t.Errorf("the record is %+v", r)
					}
				})
			})
		}
	}
}

// If the caller abandons an Acquire that takes the lease over, the Session undoes the take-over.
// SPEC H3, H8.
func TestAbandonedTakeOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(n *network)
	}{
		{"in the change", func(n *network) { n.meet(lease.ActionChange, slow(2*time.Second, 0)) }},
		{"in the change, its answer lost", func(n *network) { n.meet(lease.ActionChange, loseAnswer) }},
		{"in the acquire", func(n *network) { n.meet(lease.ActionAcquire, nil, slow(2*time.Second, 0)) }},
		{"in the acquire, refused", func(n *network) {
			n.meet(lease.ActionAcquire, nil, func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
				time.Sleep(2 * time.Second)
				return lease.Result{}, lease.ErrEpochLimit
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
				h := n.open(t, crashed(session.Options{}))
				c.fault(n)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if ok, err := h.Acquire(ctx); ok || err == nil {
					t.Fatal(ok, err)
				}
				time.Sleep(7 * time.Second)
				if r := n.record(t); r.State != lease.Available {
					t.Errorf("the record is %+v", r)
				}
				h.notLost(t)
			})
		})
	}
}

// If the lease becomes free between the refused acquire and the change of a take-over, the Session
// acquires the lease. SPEC H8.
func TestTakeOverOfALeaseThatWasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		old := n.open(t, &session.Options{Owner: "node-1"})
		old.acquire(t)
		n.meet(lease.ActionChange, first(func() { old.release(t) }))
		n.open(t, crashed(session.Options{})).acquire(t)
	})
}

// If several Sessions take the lease over at the same time, at most one Session holds the lease at
// the end, and each grant has a different token. SPEC H8.
func TestRacingTakeOvers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		n.open(t, &session.Options{Owner: "node-1"}).acquire(t)
		n.keep(lease.ActionAcquire, slow(time.Second, time.Second))
		n.keep(lease.ActionChange, slow(time.Second, time.Second))
		var mu sync.Mutex
		tokens := map[lease.Token]bool{}
		var hs []*holder
		var wg sync.WaitGroup
		for i := range 8 {
			h := n.open(t, crashed(session.Options{}))
			hs = append(hs, h)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 700 * time.Millisecond)
				tok, ok, err := h.AcquireWithToken(context.Background())
				if err != nil {
					t.Errorf("%d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ok && tokens[tok] {
					t.Errorf("token %v twice", tok)
				}
				tokens[tok] = true
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		believers := 0
		for _, h := range hs {
			if h.CheckAlive() {
				believers++
				if r := n.record(t); r.ID != h.ID() {
					t.Errorf("%v believes, and the record is %+v", h.ID(), r)
				}
			}
		}
		if believers != 1 {
			t.Errorf("%d believe", believers)
		}
	})
}
