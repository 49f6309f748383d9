package session_test

import (
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
