package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A logbook is a slog.Handler that keeps the log records that it gets.
type logbook struct {
	mu    sync.Mutex
	out   bytes.Buffer
	pause time.Duration // how long a record takes
	slog.Handler
}

func newLogbook() *logbook {
	b := new(logbook)
	b.Handler = slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
	return b
}

// Write makes a logbook the writer of its own Handler.
func (b *logbook) Write(p []byte) (int, error) {
	time.Sleep(b.pause)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

// lines returns the lines that contain a text.
func (b *logbook) lines(text string) (lines []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.out.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// While another holder has the lease, Run and AcquireWait log one record, even if many attempts are
// refused. If the first attempt is granted, they log no record.
func TestLogOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, other := n.open(t, nil), n.open(t, nil)
		occupy := func() {
			other.acquire(t)
			time.AfterFunc(time.Minute, func() { other.release(t) })
		}
		occupy()
		terms, book := 0, newLogbook()
		err := session.Run(t.Context(), h, func(context.Context, lease.Token) error {
			terms++
			return errWork
		}, &session.RunOptions{Logger: slog.New(book), Again: func(error) bool {
			switch terms {
			case 1: // the second term begins after another wait
				occupy()
			case 3: // the third term begins without a wait
				return false
			}
			return true
		}})
		if err != errWork {
			t.Errorf("run: %v", err)
		}
		if lines := book.lines(`level=INFO msg="lease: waiting for another holder" name=jobs/nightly holder=` + other.Owner()); terms != 3 || len(lines) != 2 {
			t.Errorf("%d terms, and the log is\n%s", terms, book.out.String())
		}
		if lines := book.lines(`level=WARN msg="lease: term ended" name=jobs/nightly err="the work failed" token=00000000000000000002`); len(lines) != 1 {
			t.Errorf("the end of the first term is not in\n%s", book.out.String())
		}
	})
}

// Work that does not end with its context is reported once, after a StopWindow. Work that releases its lease, or
// hands it over, and returns the cause of its context, has not failed.
func TestLogOfTheEnd(t *testing.T) {
	const goesOn, ended = `level=WARN msg="lease: the work goes on, although its context has ended" name=jobs/nightly for=5s`, `level=INFO msg="lease: term ended"`
	synctest.Test(t, func(t *testing.T) {
		for late, want := range map[time.Duration]int{4 * time.Second: 0, time.Hour: 1} {
			h, book := overMemory().open(t, nil), newLogbook()
			err := session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
				_ = h.Release(ctx)
				time.Sleep(late)
				return context.Cause(ctx)
			}, &session.RunOptions{Logger: slog.New(book)})
			if lines := book.lines(goesOn); !errors.Is(err, lease.ErrReleased) || len(lines) != want || len(book.lines(ended)) != 1 {
				t.Errorf("work that goes on for %v: %v, and the log is\n%s", late, err, book.out.String())
			}
		}
	})
}

// A call returns after the Logger has its last record, because the program may exit then.
func TestLogOfCallThatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, call := range map[string]func(ctx context.Context, o *session.RunOptions){
			"term ended": func(ctx context.Context, o *session.RunOptions) { _ = session.Run(ctx, &plain{ok: true}, idle, o) },
			"ended": func(ctx context.Context, o *session.RunOptions) {
				_, _ = session.TryRun(ctx, &plain{ok: true}, idle, o)
			},
			"waiting": func(ctx context.Context, o *session.RunOptions) { _, _ = session.AcquireWait(ctx, &plain{}, o) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			book := newLogbook()
			book.pause = 10 * time.Millisecond
			if call(ctx, &session.RunOptions{Logger: slog.New(book)}); !strings.Contains(book.out.String(), want) {
				t.Errorf("%q is not in %q", want, &book.out)
			}
		}
	})
}

// If the Lease is not a Session, it may not log its failures, so Run and AcquireWait log them. They
// log some of the attempts that fail in a row, and the first attempt after the failures that does
// not fail.
func TestLogOfFailedAttempts(t *testing.T) {
	for _, granted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, book := &plain{ok: true}, newLogbook()
			const attempts = 7
			l.next = slices.Repeat([]plainAnswer{{err: errNet}}, attempts)
			if !granted {
				l.next = append(l.next, plainAnswer{}, plainAnswer{err: errNet})
			}
			if _, err := session.AcquireWait(t.Context(), l, &session.RunOptions{Logger: slog.New(book)}); err != nil {
				t.Errorf("acquire: %v", err)
			}
			synctest.Wait()
			failed := `level=WARN msg="lease: acquire failed" failures=%d err="` + errNet.Error() + `"`
			again := `level=INFO msg="lease: the authority answers again" failures=%d`
			want := []string{fmt.Sprintf(failed, 1), fmt.Sprintf(failed, 2), fmt.Sprintf(failed, 4), fmt.Sprintf(again, attempts)}
			if !granted {
				want = append(want, `level=INFO msg="lease: waiting for another holder"`, fmt.Sprintf(failed, 1), fmt.Sprintf(again, 1))
			}
			if lines := book.lines(""); !slices.EqualFunc(lines, want, strings.HasSuffix) {
				t.Errorf("granted %v: logged\n%swant\n%s", granted, book.out.String(), strings.Join(want, "\n"))
			}
		})
	}
}

// A Session logs its failures itself, so Run does not log them a second time. An error that Run
// returns is not logged.
func TestLogOfFailedAttemptsIsNotDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, book := overMemory(), newLogbook()
		log := slog.New(book)
		h := n.open(t, &session.Options{Logger: log})
		n.keep(lease.ActionAcquire, failRequest)
		time.AfterFunc(time.Minute, n.heal)
		if err := session.Run(t.Context(), struct{ *session.Session }{h.Session}, idle, &session.RunOptions{Logger: log}); err != nil {
			t.Errorf("run: %v", err)
		}
		synctest.Wait()
		if first, again := book.lines("failures=1 "), book.lines("answers again"); len(first) != 1 || len(again) != 1 {
			t.Errorf("logged %v and %v", first, again)
		}
		l, book := &plain{err: lease.ErrClosed}, newLogbook()
		if err := session.Run(t.Context(), l, idle, &session.RunOptions{Logger: slog.New(book)}); !errors.Is(err, lease.ErrClosed) || book.out.Len() > 0 {
			t.Errorf("run: %v, and logged %s", err, book.out.String())
		}
	})
}
