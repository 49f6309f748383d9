package session_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
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
		book := newLogbook()
		h := n.open(t, &session.Options{Logger: slog.New(book)})
		var calls atomic.Int32
		h.OnLost(func(error) { panic("boom") })
		h.OnLost(func(error) { runtime.Goexit() })
		h.OnLost(func(error) { calls.Add(1) })
		h.acquire(t)
		n.lose(t, h)
		if calls.Load() != 1 {
			t.Errorf("the other was called %d times", calls.Load())
		}
		lines := book.lines("panicked")
		if text := strings.Join(lines, "\n"); len(lines) != 1 || !strings.Contains(text, "panic=boom") || !strings.Contains(text, name) || !strings.Contains(text, "report_handlers_test.go") {
			t.Errorf("reported %q", text)
		}
		h.acquire(t) // the Session still works
	})
}

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
