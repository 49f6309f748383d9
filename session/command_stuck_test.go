package session_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// The fault exit ends the goroutine of the request, and does not carry out the request.
func exit(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	runtime.Goexit()
	panic("not reached")
}

// The fault exitAfter carries out the request, and then ends the goroutine of the request.
func exitAfter(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
	_, _ = send(ctx)
	return exit(ctx, send)
}

// A renewal whose Do ends its goroutine has an unknown outcome. The Session sends the next renewal,
// and keeps the lease. SPEC H11b.
func TestRenewalThatEndsItsGoroutine(t *testing.T) {
	for what, f := range map[string]fault{"lost": exit, "carried out": exitAfter} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.keep(lease.ActionRenew, everyOther(f))
				time.Sleep(time.Hour)
				h.alive(t, true)
				h.notLost(t)
			})
		})
	}
}

// An acquire whose Do ends its goroutine has an unknown outcome. Whether or not the acquire was
// granted, the Session can afterwards acquire an infinite lease, and Release can release it.
// SPEC H1, H3.
func TestAcquireThatEndsItsGoroutine(t *testing.T) {
	for what, f := range map[string]fault{"not granted": exit, "granted": exitAfter} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h, other := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, nil)
				n.meet(lease.ActionAcquire, f)
				h.unknown(t, nil)
				h.alive(t, false)
				h.release(t)
				other.acquire(t)
				other.release(t)
				n.meet(lease.ActionAcquire, f)
				h.unknown(t, nil)
				h.acquire(t)
				time.Sleep(time.Hour)
				h.alive(t, true)
			})
		})
	}
}

// If the Do of a renewal never returns, the Session gives the renewal up one RequestTimeout after
// its context has ended. The next renewal keeps the lease. SPEC H11b.
func TestRenewalThatNeverReturns(t *testing.T) {
	for what, f := range map[string]func(n *network) fault{
		"lost":        func(n *network) fault { return n.hang },
		"carried out": func(n *network) fault { return n.hangAfter },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.meet(lease.ActionRenew, f(n))
				time.Sleep(time.Hour)
				h.alive(t, true)
				h.notLost(t)
				sent := n.requests(lease.ActionRenew)
				if waited := sent[1].at.Sub(sent[0].at); waited < 10*time.Second || waited > 12500*time.Millisecond {
					t.Errorf("the next renewal was sent %v after one that never returns", waited)
				}
			})
		})
	}
}

// An Acquire that was given up may be carried out after a release of its ID, and return before the
// release returns. If this happens, the Session releases the ID again. SPEC H3.
func TestAcquireThatOvertakesItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		arrives := make(chan struct{})
		n.meet(lease.ActionAcquire, carriedOutAfter(arrives))
		h.unknown(t, nil)
		n.meet(lease.ActionRelease, slow(0, time.Second))
		released := make(chan error)
		go func() { released <- h.Release(t.Context()) }()
		time.Sleep(time.Second / 2)
		close(arrives)
		if err := <-released; err != nil {
			t.Errorf("Release: %v", err)
		}
		other.acquire(t)
		other.release(t)
	})
}

// An Acquire that was given up may be granted after its ID was released. Once the Do of the Acquire
// has returned, the Session releases the ID again, and another holder can acquire the lease.
// SPEC H3.
func TestAcquireThatIsGrantedAfterItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		arrives := make(chan struct{})
		n.meet(lease.ActionAcquire, carriedOutAfter(arrives))
		h.unknown(t, nil)
		h.release(t)
		close(arrives)
		synctest.Wait()
		other.acquire(t)
		other.release(t)
		h.acquire(t)
		time.Sleep(time.Hour)
		h.alive(t, true)
	})
}

// While two requests that were given up have not returned, the Session sends no request, and every
// call that needs a request fails at once. When the two requests return, the Session recovers, and
// none of its IDs stays in force. SPEC H11b.
func TestTwoRequestsThatNeverReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		h.acquire(t)
		n.keep(lease.ActionRenew, n.hangAfter)
		time.Sleep(time.Minute)
		h.lostOnce(t, lease.ErrExpired)
		if n.together(lease.ActionRenew) != 2 || n.count(lease.ActionRenew) != 2 {
			t.Fatalf("%d renewals were sent, %d at once", n.count(lease.ActionRenew), n.together(lease.ActionRenew))
		}
		before := n.count()
		_, ok, err := h.AcquireWithToken(t.Context())
		if ok || err == nil || !strings.Contains(err.Error(), "given up") {
			t.Errorf("acquire: %v, %v", ok, err)
		}
		time.Sleep(time.Hour)
		if sent := n.count() - before; sent != 0 {
			t.Errorf("%d requests were sent while two were stuck", sent)
		}
		n.heal()
		synctest.Wait()
		h.acquire(t)
		time.Sleep(time.Hour)
		h.alive(t, true)
		h.release(t)
		other.acquire(t)
	})
}

// While every request hangs, only few requests are outstanding, and every call ends by itself.
// After the network has healed, the Session can hold the lease again. SPEC H11b.
func TestAuthorityThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		for _, a := range []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease, lease.ActionChange} {
			n.keep(a, n.hang)
		}
		for range 60 {
			time.Sleep(time.Minute)
			_, _ = h.Acquire(t.Context())
			if err := h.Release(t.Context()); err == nil && n.record(t).State == lease.Leased {
				t.Fatal("released, but in force")
			}
		}
		if sent := n.count() - 1; sent > 3 { // a command was in flight when the second request was given up
			t.Errorf("%d requests are outstanding", sent)
		}
		n.heal()
		synctest.Wait()
		h.acquire(t)
		time.Sleep(time.Hour)
		h.alive(t, true)
	})
}

// A stuck Acquire of an infinite lease is carried out while the probe of its ID is in flight, after
// the authority has refused the probe. SPEC H3, H17c.
func TestStuckAcquireOvertakesItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, nil)
		arrives := make(chan struct{})
		n.meet(lease.ActionAcquire,
			carriedOutAfter(arrives),
			func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) { // the probe
				other.acquire(t) // another holder acquires the lease first
				res, err := send(ctx)
				other.release(t)
				close(arrives)
				time.Sleep(time.Second) // the answer takes a second
				return res, err
			})
		h.unknown(t, nil)
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("after Close the lease is locked: %+v", r)
		}
	})
}

// The first of two infinite Acquires is stuck, and is carried out after the lease was handed over,
// while the answer to the hand-over is on its way. SPEC H3.
func TestStuckAcquireOvertakesItsHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, &session.Options{Duration: lease.Infinite}), n.open(t, nil)
		arrives := make(chan struct{})
		n.meet(lease.ActionAcquire, carriedOutAfter(arrives))
		h.unknown(t, nil)
		h.acquire(t)
		n.meet(lease.ActionChange, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, err := send(ctx)
			other.acquire(t)
			other.release(t)
			close(arrives)
			time.Sleep(time.Second)
			return res, err
		})
		if err := h.HandOver(t.Context(), other.ID()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("after the hand-over the lease is locked: %+v", r)
		}
	})
}

// A stuck infinite Acquire is carried out and returns while the release of its ID is in flight, and
// the release fails. The Session sends the release again, although no call waits for it. SPEC H3.
func TestStuckAcquireReturnsDuringAReleaseThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Duration: lease.Infinite})
		arrives := make(chan struct{})
		n.meet(lease.ActionAcquire, carriedOutAfter(arrives))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n.meet(lease.ActionRelease, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			close(arrives)
			time.Sleep(time.Second)
			return lease.Result{}, errNet
		})
		if _, err := h.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("a minute later the lease is locked: %+v", r)
		}
	})
}

// carriedOutAfter returns the handling of a request that reaches the authority when the channel
// arrives is closed, even if its caller no longer waits.
func carriedOutAfter(arrives <-chan struct{}) func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		<-arrives
		return send(context.WithoutCancel(ctx))
	}
}
