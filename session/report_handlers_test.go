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
		n.breaks(t, 0)
		time.Sleep(time.Minute)
		h.alive(t, false)
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
