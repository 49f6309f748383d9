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

// Release returns nil if the lease is released, or if there was nothing to release. SPEC H17.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		for range 20 {
			if err := h.Release(done(context.Background())); err != nil || n.count() != 0 {
				t.Errorf("a release of nothing: %v, after %d requests", err, n.count())
			}
		}
		h.acquire(t)
		id := h.ID()
		h.release(t)
		h.alive(t, false)
		if r := n.record(t); r.State != lease.Available || n.requests(lease.ActionRelease)[0].ID != id {
			t.Errorf("the record is %+v", r)
		}
		if h.release(t); n.count(lease.ActionRelease) != 1 {
			t.Error("released twice")
		}
		time.Sleep(time.Hour)
		if n.count(lease.ActionRenew) != 0 {
			t.Error("renewed after the release")
		}
		h.notLost(t)
		n.meet(lease.ActionAcquire, refuse(lease.ErrHeldByOther, lease.Result{}))
		h.refused(t)
		if h.release(t); n.count(lease.ActionRelease) != 1 {
			t.Error("released what another has")
		}
	})
}

// From the call of Release on, CheckAlive returns false, even if Release returns an error. If
// Release returns an error, the program calls Release again. SPEC H17.
func TestReleaseThatErrs(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
		is    error
		took  time.Duration
	}{
		{"request lost", loseRequest, errNoAnswer, 5 * time.Second},
		{"answer lost", loseAnswer, errNoAnswer, 5 * time.Second},
		{"request fails", failRequest, errNet, 0},
		{"answer fails", failAnswer, errNet, 0},
		{"conflict", refuse(lease.ErrConflict, lease.Result{}), lease.ErrConflict, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				h.acquire(t)
				n.meet(lease.ActionRelease, first(func() { h.alive(t, false) }), c.fault)
				h.release(t) // shows that CheckAlive returns false before the request is sent
				h.acquire(t)
				began := time.Now()
				err := h.Release(context.Background())
				if !matches(err, c.is) || time.Since(began) != c.took {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				var op *lease.OpError
				if !errors.As(err, &op) || op.Name != name {
					t.Errorf("%#v names no lease", err)
				}
				h.alive(t, false)
				h.release(t)
				if n.record(t).State != lease.Available {
					t.Errorf("the record is %+v", n.record(t))
				}
				h.notLost(t)
			})
		})
	}
}

// If the context of Release is done, Release still ends the belief and sends its request. SPEC H17.
func TestReleaseWithADoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		n.meet(lease.ActionRelease, slow(time.Second, 0))
		want := lease.OpError{Op: "release", Name: name, Err: context.Canceled}
		if err := h.Release(ctx); !errors.Is(err, context.Canceled) || err.Error() != want.Error() {
			t.Errorf("release: %v, want %v", err, &want)
		}
		h.alive(t, false)
		time.Sleep(time.Second)
		synctest.Wait()
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
		h.notLost(t)
	})
}

// If the authority hangs, Release gives up.
func TestReleaseGivesUpAnAuthorityThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{RequestTimeout: time.Second})
		h.acquire(t)
		n.meet(lease.ActionRelease, n.hang)
		began := time.Now()
		if err := h.Release(context.Background()); !matches(err, errNoAnswer) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		n.heal()
		h.release(t)
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}

// Release ends every running Acquire, at any stage of the Acquire, and waits until the Acquire is
// undone. SPEC H17, H3.
func TestReleaseSupersedesAcquire(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    fault
		requests int
	}{
		{"before the effect", slow(2*time.Second, 0), 2},
		{"after the effect", slow(0, 2*time.Second), 2},
		{"refused", func(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(2 * time.Second)
			return lease.Result{}, lease.ErrHeldByOther
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				n.meet(lease.ActionAcquire, c.fault)
				done := make(chan error, 2)
				for range 2 { // the request of one Acquire is in flight, and the other Acquire waits for its turn
					go func() {
						ok, err := h.Acquire(context.Background())
						if ok {
							t.Error("acquired")
						}
						done <- err
					}()
				}
				time.Sleep(time.Second)
				began := time.Now()
				h.release(t)
				if took := time.Since(began); took != time.Second {
					t.Errorf("released after %v", took)
				}
				for range 2 {
					if err := <-done; !errors.Is(err, lease.ErrReleased) {
						t.Errorf("acquire: %v", err)
					}
				}
				h.alive(t, false)
				if n.record(t).State != lease.Available || n.count() != c.requests {
					t.Errorf("the record is %+v after %v", n.record(t), n.requests())
				}
				h.acquire(t)
				h.notLost(t)
			})
		})
	}
}

// If the answer to an Acquire arrives at the moment when Release is called, the Session does not
// believe the answer. From the call of Release on, CheckAlive returns false. SPEC H17, H3.
func TestReleaseJustBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var h *holder
		released := make(chan error, 1)
		h = n.open(t, nil)
		n.meet(lease.ActionAcquire, then(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			released <- h.Release(ctx) // Release returns before the answer arrives
		}))
		h.unknown(t, lease.ErrReleased)
		h.alive(t, false)
		if err := <-released; !errors.Is(err, context.Canceled) {
			t.Errorf("release: %v", err)
		}
		synctest.Wait()
		h.alive(t, false)
		if n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}

// After a release that took effect, no later event is reported as a loss. SPEC H15.
func TestNoLossAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.meet(lease.ActionRenew, slow(4*time.Second, 0))
		time.Sleep(12 * time.Second) // a renewal is in flight
		h.release(t)
		time.Sleep(time.Hour)
		h.notLost(t)
		if n.count(lease.ActionRelease) != 1 {
			t.Errorf("released %d times", n.count(lease.ActionRelease))
		}
	})
}

// A Release at U or later finds a loss, which the Session reports once to its handlers. The first Release
// returns it, and the next one does not. SPEC H15, H17d.
func TestReleaseAtU(t *testing.T) {
	for _, c := range []struct {
		at   time.Duration // the time of the Release, relative to U
		lost int
	}{{-1, 0}, {0, 1}, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, &session.Options{Rand: newSteady()})
			n.keep(lease.ActionRenew, n.hang)
			h.acquire(t)
			time.Sleep(time.Until(until(t, h)) + c.at)
			if err := h.Release(t.Context()); errors.Is(err, lease.ErrLost) != (c.lost > 0) || c.lost == 0 && err != nil {
				t.Errorf("the first Release returns %v", err)
			}
			h.release(t)
			time.Sleep(time.Minute)
			if lost := h.losses(); len(lost) != c.lost {
				t.Errorf("released %v from U, and told %v", c.at, lost)
			}
		})
	}
}

// The Session retries a release that failed. But if a later grant shows that the ID of the failed
// release is not in force, the Session does not retry the release. SPEC H6.
func TestReleaseOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		var ids []lease.ID
		n.keep(lease.ActionRelease, failAnswer)
		for range 3 {
			h.acquire(t)
			ids = append(ids, h.ID())
			if err := h.Release(context.Background()); err == nil {
				t.Fatal("the release did not fail")
			}
		}
		n.keep(lease.ActionRelease, nil)
		before := n.count(lease.ActionRelease)
		if before != 3 {
			t.Errorf("%d releases so far", before)
		}
		h.release(t)
		if again := n.requests(lease.ActionRelease)[before:]; len(again) != 1 || again[0].ID != ids[2] {
			t.Errorf("released: %v", again)
		}
	})
}
