package session_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// If Acquire returns true, the lease is held. If Acquire returns false without an error, another
// holder has the lease. Acquire does not wait. SPEC H1.
func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		began := time.Now()
		first := a.acquire(t)
		a.alive(t, true)
		if r := n.record(t); r.ID != a.ID() || r.Owner != a.Owner() || r.Token() != first || a.Token() != first {
			t.Errorf("the record is %+v; the holder has %v", r, first)
		}
		b.refused(t)
		b.alive(t, false)
		if _, held := b.Until(); held || b.Token() != "" {
			t.Error("b holds something")
		}
		a.release(t)
		if second := b.acquire(t); second.Compare(first) <= 0 {
			t.Errorf("token %v after %v", second, first)
		}
		a.refused(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
		a.notLost(t)
	})
}

// If an answer is neither a grant nor certainly a refusal, Acquire returns an error. SPEC H1.
func TestAcquireUnknown(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fault
		is    error
	}{
		{"the request is lost", loseRequest, errNoAnswer},
		{"the answer is lost", loseAnswer, errNoAnswer},
		{"the request fails", failRequest, errNet},
		{"the answer fails", failAnswer, errNet},
		{"given up by the authority", func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
			return lease.Result{}, context.Canceled
		}, context.Canceled},
		{"a conflict", refuse(lease.ErrConflict, lease.Result{}), lease.ErrConflict},
		{"a corrupt record", refuse(lease.ErrCorrupt, lease.Result{}), lease.ErrCorrupt},
		{"no newer token", refuse(lease.ErrEpochLimit, lease.Result{}), lease.ErrEpochLimit},
		{"a bad argument", refuse(lease.ErrDuration, lease.Result{}), lease.ErrDuration},
		{"breaking, under an ID that is not told", refuse(lease.ErrBreaking, lease.Result{}), lease.ErrBreaking},
		{"a grant of nothing", func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
			return lease.Result{}, nil
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				n.meet(lease.ActionAcquire, c.fault)
				h.unknown(t, c.is)
				h.alive(t, false)
				h.acquire(t) // the next Acquire is not affected
				h.notLost(t)
			})
		})
	}
}

// A Session ignores the record in an answer that has no time. SPEC A1.
func TestAnswersWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		other := n.open(t, &session.Options{Owner: "other"})
		h := n.open(t, &session.Options{Owner: "me", TakeOver: true})
		untimed := func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
			res, err := send(ctx)
			res.Now = time.Time{}
			return res, err
		}
		n.meet(lease.ActionAcquire, nil, untimed)
		other.acquire(t)
		h.unknown(t, errors.ErrUnsupported) // the answer does not show from whom to take the lease over
		other.release(t)
		n.meet(lease.ActionAcquire, untimed)
		h.unknown(t, nil)
		h.acquire(t)
		id := h.ID()
		n.keep(lease.ActionRenew, refuse(lease.ErrNotPresent, lease.Result{Record: lease.Record{State: lease.Leased, ID: id}, MinRemaining: time.Hour}))
		n.act(t, lease.Request{Action: lease.ActionRelease, ID: id})
		time.Sleep(10 * time.Second)
		h.lostOnce(t, lease.ErrNotPresent)
	})
}

// If the lease is breaking under the ID of another holder, Acquire returns false without an error.
// SPEC H1.
func TestAcquireOfABreakingLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		a.acquire(t)
		n.breaks(t, 5*time.Second)
		b.refused(t)
		n.meet(lease.ActionAcquire, refuse(lease.ErrBreaking, lease.Result{Record: n.record(t), Now: time.Now()}))
		b.refused(t)
	})
}

// If the context of Acquire is done, Acquire sends no request. If the context ends during the call,
// Acquire returns at once. SPEC H2.
func TestAcquireContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.Canceled) || n.count() != 0 {
			t.Errorf("%v, %v with a done context, and %d requests", ok, err, n.count())
		}
		n.meet(lease.ActionAcquire, slow(3*time.Second, 0))
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if ok, err := h.Acquire(ctx); ok || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v, %v after %v", ok, err, time.Since(began))
		}
		var op *lease.OpError
		if _, err := h.Acquire(ctx); !errors.As(err, &op) || op.Op != "acquire" || op.Name != name {
			t.Errorf("the error is %#v", err)
		}
	})
}

// Acquire returns after the hooks have been called, even if its context ends at the moment when the
// Acquire is decided. SPEC H2.
func TestAcquireWaitsForItsHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var notified atomic.Bool
		h := overMemory().open(t, &session.Options{Trace: &session.Trace{Acquire: func(session.AcquireInfo) {
			cancel()
			time.Sleep(time.Second)
			notified.Store(true)
		}}})
		tok, ok, err := h.AcquireWithToken(ctx)
		if !ok || err != nil || !notified.Load() || tok != h.Token() {
			t.Errorf("%v, %v, %v; the hook has returned: %v", tok, ok, err, notified.Load())
		}
		h.alive(t, true)
	})
}

// The fault sure sends the answer after the given time, with the duration d as its MinRemaining.
func sure(d, after time.Duration) fault {
	return func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		res, err := send(ctx)
		res.MinRemaining = d
		time.Sleep(after)
		return res, err
	}
}

// If the answer to a granted Acquire arrives at U or later, Acquire returns an error and the
// Session releases the lease. SPEC H4.
func TestGrantAnsweredTooLate(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		held  bool
	}{{time.Second - 1, true}, {time.Second, false}, {time.Second + 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, &session.Options{MaxClockDrift: 1e-12, Margin: time.Second - 1}) // the drift adds 1 ns
			n.meet(lease.ActionAcquire, sure(2*time.Second, c.after))
			n.keep(lease.ActionRenew, failRequest)
			if c.held {
				h.acquire(t)
				h.alive(t, true)
				time.Sleep(time.Nanosecond)
				h.alive(t, false)
				return
			}
			id := h.ID()
			h.unknown(t, lease.ErrExpired)
			h.alive(t, false)
			if synctest.Wait(); h.ID() == id || n.record(t).State != lease.Available {
				t.Errorf("the next ID is %v, the record %+v", h.ID(), n.record(t))
			}
			h.notLost(t)
		})
	}
}

// A Session does not believe a grant whose record is invalid. The outcome of the request is unknown.
// SPEC H1, H11.
func TestGrantOfWhatIsNoRecord(t *testing.T) {
	for name, spoil := range map[string]func(*lease.Record){
		"without an epoch":     func(r *lease.Record) { r.Epoch = 0 },
		"of too high an epoch": func(r *lease.Record) { r.Epoch = 1 << 63 },
		"of the wrong zone":    func(r *lease.Record) { r.Until = r.Until.In(time.FixedZone("", 3600)) },
		"without an end":       func(r *lease.Record) { r.Until = time.Time{} },
		"without a duration":   func(r *lease.Record) { r.Duration = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				spoilt := fault(func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
					res, err := send(ctx)
					spoil(&res.Record)
					return res, err
				})
				id := h.ID()
				n.meet(lease.ActionAcquire, spoilt)
				h.unknown(t, lease.ErrCorrupt)
				if h.alive(t, false); h.ID() != id {
					t.Error("the ID was retired")
				}
				tok := h.acquire(t)
				if err := tok.Validate(); err != nil {
					t.Error(err)
				}
				n.keep(lease.ActionRenew, spoilt)
				time.Sleep(time.Until(until(t, h)))
				h.lostOnce(t, lease.ErrExpired)
				if n.count(lease.ActionRenew) < 5 {
					t.Errorf("renewed %d times", n.count(lease.ActionRenew))
				}
			})
		})
	}
}

// While the lease is held, Acquire sends no request, even if its context is done. SPEC H5.
func TestAcquireWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		tok, ok, err := h.AcquireWithToken(ctx)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		cancel()
		for range 20 {
			again, ok, err := h.AcquireWithToken(ctx)
			if !ok || err != nil || again != tok || n.count() != 1 {
				t.Fatalf("%v, %v, %v, and %d requests", again, ok, err, n.count())
			}
		}
		time.Sleep(time.Hour)
		h.alive(t, true) // the end of the context does not end the incarnation
		h.notLost(t)
	})
}

// Many concurrent calls of Acquire send one request and begin one incarnation. SPEC H3, H5.
func TestConcurrentAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.keep(lease.ActionAcquire, slow(time.Second, time.Second))
		var wg sync.WaitGroup
		var mu sync.Mutex
		tokens := map[lease.Token]int{}
		for range 50 {
			wg.Go(func() {
				tok, ok, err := h.AcquireWithToken(context.Background())
				if !ok || err != nil {
					t.Errorf("%v, %v", ok, err)
				}
				mu.Lock()
				defer mu.Unlock()
				tokens[tok]++
			})
		}
		wg.Wait()
		if len(tokens) != 1 || n.count() != 1 {
			t.Errorf("tokens %v of %d requests", tokens, n.count())
		}
	})
}

// If the outcome of an Acquire is unknown, the next Acquire can propose the same ID. If the
// authority had granted the first Acquire, it then also grants the second. SPEC H6.
func TestUnknownAcquireIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionAcquire, failAnswer)
		id := h.ID()
		h.unknown(t, errNet)
		if n.record(t).State != lease.Leased {
			t.Fatal("the fault did not commit")
		}
		h.acquire(t)
		if h.ID() != id || n.record(t).ID != id || n.count(lease.ActionRelease) != 0 {
			t.Errorf("holds %v, proposed %v first, %d releases", h.ID(), id, n.count(lease.ActionRelease))
		}
	})
}

// Each incarnation has its own ID. A refused Acquire does not change the ID that the Session
// proposes, so that another holder can hand the lease over to this ID. SPEC H6.
func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		seen := map[lease.ID]bool{}
		proposed := b.ID()
		for range 20 {
			if seen[a.ID()] {
				t.Fatalf("%v again", a.ID())
			}
			seen[a.ID()] = true
			a.acquire(t)
			b.refused(t)
			a.release(t)
		}
		if b.ID() != proposed {
			t.Error("a refusal retired the ID")
		}
		b.acquire(t)
		n.breaks(t, 0)
		time.Sleep(time.Minute)
		if b.lostOnce(t, lease.ErrBroken); b.ID() == proposed {
			t.Error("a loss did not retire the ID")
		}
	})
}

// SPEC H9: a Session does not believe a negative MinRemaining.
func TestNegativeSureIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, sure := range []time.Duration{math.MinInt64, -1, 0} {
			net := overMemory()
			net.meet(lease.ActionAcquire, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
				res, err := send(ctx)
				res.MinRemaining = sure
				return res, err
			})
			s, err := session.New(net, name, &session.Options{Duration: lease.Infinite, Margin: lease.Infinite / 8, MaxClockDrift: 1e-9})
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := s.Acquire(t.Context()); ok || err == nil || s.CheckAlive() {
				t.Errorf("MinRemaining %d: Acquire %v, %v", sure, ok, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
