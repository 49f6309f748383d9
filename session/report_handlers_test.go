package session_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// lose makes a holder lose the lease that it holds.
func (n *network) lose(t *testing.T, h *holder) {
	t.Helper()
	n.breaks(t, 0)
	for deadline := time.Now().Add(time.Minute); h.CheckAlive(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatal("not lost")
		}
	}
	synctest.Wait()
}

// The Session reports a loss once to every handler that is registered at the loss. SPEC H15, H16.
func TestOnLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		var a, b, c atomic.Int32
		count := func(i *atomic.Int32) func(error) { return func(error) { i.Add(1) } }
		h.OnLost(count(&a))
		stop := h.OnLost(count(&b))
		same := count(&c)
		h.OnLost(same)
		h.OnLost(same) // registered twice, so called twice
		expect := func(wa, wb, wc int32) {
			t.Helper()
			synctest.Wait()
			if a.Load() != wa || b.Load() != wb || c.Load() != wc {
				t.Errorf("told %d, %d, %d times; want %d, %d, %d", a.Load(), b.Load(), c.Load(), wa, wb, wc)
			}
		}
		n.meet(lease.ActionAcquire, failRequest, refuse(lease.ErrHeldByOther, lease.Result{}))
		h.unknown(t, nil)
		h.refused(t)
		h.release(t)
		expect(0, 0, 0) // nothing was held
		h.acquire(t)
		n.lose(t, h)
		expect(1, 1, 2)
		h.acquire(t)
		h.release(t)
		expect(1, 1, 2)
		if !stop() || stop() {
			t.Error("stop is true once")
		}
		h.acquire(t)
		n.lose(t, h)
		expect(2, 1, 4)
	})
}

// A handler that is registered after a loss is not called for the loss. If a handler unregisters
// another handler, the unregistered handler may not be called. All other handlers are called.
// SPEC H16.
func TestHandlersThatChangeHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		var late, kept atomic.Int32
		var stop func() bool
		h.OnLost(func(error) {
			h.OnLost(func(error) { late.Add(1) })
			stop()
		})
		stop = h.OnLost(func(error) {})
		h.OnLost(func(error) { kept.Add(1) })
		h.acquire(t)
		n.lose(t, h)
		if late.Load() != 0 || kept.Load() != 1 || stop() {
			t.Errorf("late told %d times, kept %d times", late.Load(), kept.Load())
		}
		h.acquire(t)
		n.lose(t, h)
		if late.Load() != 1 || kept.Load() != 2 {
			t.Errorf("late told %d times, kept %d times", late.Load(), kept.Load())
		}
	})
}

// A handler may call every method of the Session. SPEC H16.
func TestHandlersMayCallAnything(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		call func(t *testing.T, h *holder)
	}{
		{"Acquire", func(t *testing.T, h *holder) {
			if _, err := h.Acquire(ctx); err != nil {
				t.Errorf("acquire: %v", err)
			}
		}},
		{"Release", func(t *testing.T, h *holder) { h.release(t) }},
		{"CheckAlive", func(t *testing.T, h *holder) { h.CheckAlive() }},
		{"Token", func(t *testing.T, h *holder) { h.Token() }},
		{"ID", func(t *testing.T, h *holder) { h.ID() }},
		{"Until", func(t *testing.T, h *holder) { h.Until() }},
		{"LastConfirmed", func(t *testing.T, h *holder) { h.LastConfirmed() }},
		{"Wait", func(t *testing.T, h *holder) { _ = h.Wait(ctx) }},
		{"HandOver", func(t *testing.T, h *holder) { _ = h.HandOver(ctx, lease.ID{9}) }},
		{"OnLost", func(t *testing.T, h *holder) { h.OnLost(func(error) {})() }},
		{"OnBreaking", func(t *testing.T, h *holder) { h.OnBreaking(func(time.Time) {})() }},
		{"WhileHeld", func(t *testing.T, h *holder) { _, cancel := h.WhileHeld(ctx); cancel() }},
		{"Close", func(t *testing.T, h *holder) {
			if err := h.Close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				var calls atomic.Int32
				for range 3 { // the three calls run at the same time
					h.OnLost(func(error) { c.call(t, h); calls.Add(1) })
				}
				h.OnBreaking(func(time.Time) { c.call(t, h); calls.Add(1) })
				h.acquire(t)
				n.breaks(t, 15*time.Second)
				time.Sleep(30 * time.Second)
				if synctest.Wait(); calls.Load() < 1 {
					t.Error("no call came to its end")
				}
				if c.name != "Release" && c.name != "HandOver" && c.name != "Close" && calls.Load() != 4 {
					t.Errorf("%d calls came to their end", calls.Load())
				}
			})
		})
	}
}

// If one handler panics, the other handlers are still called, and the Session logs the panic.
// SPEC H16.
func TestHandlerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var mu sync.Mutex
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return out.Write(p)
		}), nil))
		h := n.open(t, &session.Options{Logger: log})
		var calls atomic.Int32
		h.OnLost(func(error) { panic("boom") })
		h.OnLost(func(error) { runtime.Goexit() })
		h.OnLost(func(error) { calls.Add(1) })
		h.acquire(t)
		n.lose(t, h)
		if calls.Load() != 1 {
			t.Errorf("the other was called %d times", calls.Load())
		}
		mu.Lock()
		if text := out.String(); strings.Count(text, "panicked") != 1 || !strings.Contains(text, "panic=boom") || !strings.Contains(text, name) || !strings.Contains(text, "report_handlers_test.go") {
			t.Errorf("reported %q", text)
		}
		mu.Unlock()
		h.acquire(t) // the Session still works
	})
}

// The Session also logs a panic if no Logger is set. SPEC H16.
func TestHandlerPanicsWithoutLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		defer slog.SetDefault(before)
		n := overMemory()
		h := n.open(t, nil)
		h.OnLost(func(error) { panic("boom") })
		h.acquire(t)
		n.lose(t, h)
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "panic=boom") {
			t.Errorf("reported %q", text)
		}
	})
}

// A handler that blocks forever delays no method of the Session. SPEC H16.
func TestHandlerBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		free := make(chan struct{})
		h.OnLost(func(error) { <-free })
		h.acquire(t)
		n.lose(t, h)
		h.acquire(t)
		h.release(t)
		h.acquire(t)
		n.lose(t, h)
		if len(h.losses()) != 2 {
			t.Errorf("told %v", h.losses())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("close beside a handler that runs: %v", err)
		}
		close(free)
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// OnLost and OnBreaking panic if the handler is nil. The panic names the method, and the Session
// remains usable.
func TestNilHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := overMemory().open(t, nil)
		for what, call := range map[string]func(){
			"OnLost":     func() { h.OnLost(nil) },
			"OnBreaking": func() { h.OnBreaking(nil) },
		} {
			func() {
				defer func() {
					if text, want := recover(), "session: "+what+": the handler must not be nil"; text != want {
						t.Errorf("panicked with %v, want %q", text, want)
					}
				}()
				call()
			}()
		}
		h.acquire(t)
	})
}

// A handler that is registered after U is not called for the loss at U, even if the Session has not
// detected the loss yet. SPEC H16.
func TestHandlerRegisteredAtU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := overMemory(), &frozen{now: time.Now()}
		h := n.open(t, &session.Options{Clock: c})
		h.acquire(t)
		c.step(time.Hour)
		notified := false
		h.OnLost(func(error) { notified = true })
		synctest.Wait()
		h.lostOnce(t, lease.ErrExpired)
		if notified {
			t.Error("told")
		}
	})
}

// frozen is a clock whose alarms never ring.
type frozen struct {
	now     time.Time
	stepped atomic.Int64
}

func (c *frozen) Now() time.Time                       { return c.now.Add(time.Duration(c.stepped.Load())) }
func (c *frozen) After(time.Duration) <-chan time.Time { return nil }
func (c *frozen) step(d time.Duration)                 { c.stepped.Add(int64(d)) }
