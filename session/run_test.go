package session_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

var errWork = errors.New("the work failed")

// If the context ends or the lease is released before Run calls the function, Run leaves no lease
// locked. SPEC N3.
func TestRunContextEndsBefore(t *testing.T) {
	never := func(context.Context, lease.Token) error { panic("called") }
	synctest.Test(t, func(t *testing.T) { // the context ends just as the lease is granted
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancelCause(context.Background())
		if err := session.Run(ctx, justAcquired{h.Session, func() { cancel(errWork) }}, never, nil); !errors.Is(err, context.Canceled) || !errors.Is(err, errWork) {
			t.Errorf("run: %v", err)
		}
		if h.alive(t, false); n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
	synctest.Test(t, func(t *testing.T) { // the lease is lost or released before Run calls the function
		n := overMemory()
		h := n.open(t, nil)
		l := justAcquired{h.Session, func() { h.release(t) }}
		if err := session.Run(context.Background(), l, never, nil); !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("run: %v", err)
		}
		if err := session.Run(context.Background(), justReleased{h.Session}, never, nil); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("run: %v", err)
		}
	})
}

// justReleased is a Session whose lease is released before the first use of its context.
type justReleased struct{ *session.Session }

func (l justReleased) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	held, cancel := l.Session.WhileHeld(ctx)
	_ = l.Session.Release(ctx)
	return held, cancel
}

// justAcquired calls the function do just after a granted Acquire.
type justAcquired struct {
	*session.Session
	do func()
}

func (l justAcquired) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := l.Session.AcquireWithToken(ctx)
	if ok {
		l.do()
	}
	return tok, ok, err
}

// If the function panics or calls runtime.Goexit, Run still releases the lease. SPEC N3.
func TestRunPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		text := "returned"
		for _, ends := range []func(){func() { panic("boom") }, runtime.Goexit} {
			go func() {
				text = textOf(func() {
					_ = session.Run(context.Background(), h, func(context.Context, lease.Token) error { ends(); return nil }, nil)
				})
			}()
			synctest.Wait()
			if h.alive(t, false); text != "boom" || n.record(t).State != lease.Available {
				t.Errorf("panicked with %q, and the record is %+v", text, n.record(t))
			}
		}
	})
}

// After every term, Again decides whether Run contends again. Other holders get their turn between
// two terms. SPEC N1, N4.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		a, b := n.open(t, nil), n.open(t, nil)
		var mu sync.Mutex
		var order []string
		var errs []error
		run := func(h *holder, who string) error {
			return session.Run(context.Background(), h, func(context.Context, lease.Token) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, who)
				time.Sleep(10 * time.Second)
				return fmt.Errorf("%s: %w", who, errWork)
			}, &session.RunOptions{Again: func(err error) bool {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				return len(errs) < 9
			}})
		}
		var wg sync.WaitGroup
		for _, h := range []*holder{a, b} {
			wg.Go(func() {
				if err := run(h, h.Owner()); !errors.Is(err, errWork) {
					t.Errorf("run: %v", err)
				}
			})
		}
		wg.Wait()
		for i := range order[1:] {
			if order[i] == order[i+1] && i+2 < len(order) {
				t.Errorf("twice in a row: %v", order)
			}
		}
		if len(order) != 10 || len(errs) != 10 {
			t.Errorf("%d terms, asked %d times", len(order), len(errs))
		}
	})
	synctest.Test(t, func(t *testing.T) { // the context ends before the next term begins
		l := &plain{ok: true}
		ctx, cancel := context.WithCancel(context.Background())
		err := session.Run(ctx, l, func(context.Context, lease.Token) error { return nil },
			&session.RunOptions{Again: func(error) bool { cancel(); return true }})
		if err != context.Canceled || l.calls.Load() != 1 {
			t.Errorf("run: %v, after %d calls", err, l.calls.Load())
		}
	})
}
