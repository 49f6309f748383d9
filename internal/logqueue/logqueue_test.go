package logqueue_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/logqueue"
)

// handler is a slog.Handler that calls before for every record, and then writes it.
type handler struct {
	slog.Handler
	before func(slog.Record)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.before(r)
	return h.Handler.Handle(ctx, r)
}

func logger(out *bytes.Buffer, before func(slog.Record)) *slog.Logger {
	return slog.New(handler{slog.NewTextHandler(out, nil), before})
}

// Records arrive in order, with their level and attributes.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := logqueue.Queue{To: logger(&out, func(slog.Record) { time.Sleep(time.Millisecond) })}
		q.Log(slog.LevelInfo, "first", "n", 1)
		q.Log(slog.LevelError, "second", "err", error(nil), "m", 2)
		q.Log(slog.LevelWarn, "third", "err", lease.ErrBroken)
		q.Flush()
		lines := strings.Split(out.String(), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], `level=INFO msg=first n=1`) || !strings.Contains(lines[1], `level=ERROR msg=second m=2`) {
			t.Errorf("logged:\n%s", out.String())
		}
		if !strings.Contains(lines[2], `level=WARN msg=third err="the lease was broken"`) { // and not err=broken
			t.Errorf("logged:\n%s", out.String())
		}
	})
}

// Log does not call the methods of an error, because its caller may hold a lock.
func TestErrorsAreNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := logqueue.Queue{To: slog.New(slog.DiscardHandler)}
		q.Log(slog.LevelInfo, "x", "err", blocking{})
	})
}

// A blocking error has no text.
type blocking struct{}

func (blocking) Error() string { panic("the text of an error was asked for") }

// A Logger that never returns does not delay Log, and delays Flush only for a short time. After records
// were dropped, the next record that is logged has their number.
func TestLoggerThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		free := make(chan struct{})
		q := logqueue.Queue{To: logger(&out, func(slog.Record) { <-free })}
		began := time.Now()
		q.Flush() // of nothing
		q.Log(slog.LevelInfo, "x")
		synctest.Wait() // the Logger has the record
		for range 64 + 7 {
			q.Log(slog.LevelInfo, "x")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Log took %v", took)
		}
		q.Flush()
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("Flush took %v", took)
		}
		close(free)
		q.Flush()
		q.Log(slog.LevelInfo, "x")
		q.Flush()
		if text := out.String(); strings.Count(text, "dropped=7") != 1 || strings.Count(text, "dropped=") != 1 || strings.Count(text, "\n") != 66 {
			t.Errorf("logged:\n%s", text)
		}
	})
}

// If a Logger ends its goroutine while it logs a record, no other record is lost.
func TestLoggerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := logqueue.Queue{To: logger(&out, func(r slog.Record) {
			if r.Message == "bad" {
				runtime.Goexit()
			}
		})}
		q.Log(slog.LevelInfo, "bad")
		q.Log(slog.LevelInfo, "good")
		began := time.Now()
		q.Flush()
		if text := out.String(); !strings.Contains(text, "msg=good") || time.Since(began) != 0 {
			t.Errorf("after %v logged: %q", time.Since(began), text)
		}
	})
}

// Without a Logger, a Queue passes each record to the Logger that slog.Default returns at that time.
func TestDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		before := slog.Default()
		defer slog.SetDefault(before)
		var q logqueue.Queue
		slog.SetDefault(logger(&out, func(slog.Record) {}))
		q.Log(slog.LevelInfo, "x")
		q.Flush()
		if !strings.Contains(out.String(), "msg=x") {
			t.Errorf("logged: %q", out.String())
		}
	})
}
