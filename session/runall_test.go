package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A ledgerOf is an authority that lists its acquires and releases that were granted, and refuses to
// answer renewals of the lease named silent. Each release takes the time slow.
type ledgerOf struct {
	lease.Authority
	mu     sync.Mutex
	list   []string
	silent string
	slow   atomic.Int64 // a time.Duration
}

func (a *ledgerOf) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease {
		select {
		case <-time.After(time.Duration(a.slow.Load())):
		case <-ctx.Done():
			return lease.Result{}, ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if name == a.silent && req.Action == lease.ActionRenew {
		return lease.Result{}, errNet
	}
	res, err := a.Authority.Do(ctx, name, req)
	if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionRelease) {
		a.list = append(a.list, req.Action.String()+" "+name)
	}
	return res, err
}

func (a *ledgerOf) open(t *testing.T, name string, o *session.Options) *session.Session {
	t.Helper()
	s, err := session.New(a, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newLedger() *ledgerOf { return &ledgerOf{Authority: lease.NewAuthority(memory.New(nil))} }

// all opens the leases with the given names.
func (a *ledgerOf) all(t *testing.T, names ...string) (ls []lease.Lease) {
	for _, name := range names {
		ls = append(ls, a.open(t, name, nil))
	}
	return ls
}

func (a *ledgerOf) check(t *testing.T, want ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.list, want) {
		t.Errorf("%q, want %q", a.list, want)
	}
}

func waitFor(ctx context.Context, _ []lease.Token) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// RunAll acquires in the order of the names, gives the tokens in the order of the arguments, and
// releases all at the same time, even after a panic. If all releases fail, it returns all errors.
func TestRunAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLedger()
		ls := a.all(t, "c", "a", "b")
		_, _ = ls[0].Acquire(t.Context())
		_ = ls[0].Release(t.Context()) // so that the tokens differ
		for _, c := range []struct {
			slow, took time.Duration
			panics     bool
		}{{took: 0, panics: true}, {3 * time.Second, 3 * time.Second, true}, {time.Hour, 4 * time.Second, false}} {
			a.list = nil
			a.slow.Store(int64(c.slow))
			began, want := time.Now(), []string{"acquire a", "acquire b", "acquire c"}
			func() {
				defer func() { _ = recover() }()
				err := session.RunAll(t.Context(), ls, func(_ context.Context, toks []lease.Token) error {
					for i, l := range ls {
						if !l.CheckAlive() || toks[i] != l.(*session.Session).Token() || toks[i] == "" {
							t.Errorf("token %d is %q", i, toks[i])
						}
					}
					if c.panics {
						want = append(want, "release a", "release b", "release c")
						panic("f")
					}
					return errWork
				}, &session.RunOptions{ReleaseTimeout: 4 * time.Second})
				if !errors.Is(err, errWork) || strings.Count(err.Error(), "ReleaseTimeout") != len(ls) {
					t.Errorf("RunAll returns %v", err)
				}
			}()
			if took := time.Since(began); took != c.took {
				t.Errorf("RunAll took %v, want %v", took, c.took)
			}
			slices.Sort(a.list[3:])
			a.check(t, want...)
		}
		a.slow.Store(0)
	})
}

// If one lease cannot be had or is lost, f is not called or its context ends, the error says which lease
// it was, and all leases are released.
func TestRunAllOrNone(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(a *ledgerOf)
		wrap   func(ls []lease.Lease) // replaces a lease
		o      session.RunOptions
		code   lease.Code
		which  string
		called bool
	}{
		{what: "the first lease is not renewed", change: func(a *ledgerOf) { a.silent = "a" }, code: lease.ErrStopWindow, which: "a", called: true},
		{what: "the last lease is not renewed", change: func(a *ledgerOf) { a.silent = "c" }, code: lease.ErrStopWindow, which: "c", called: true},
		{what: "one is broken", change: func(a *ledgerOf) {
			time.AfterFunc(time.Second, func() { _, _ = lease.Break(context.Background(), a, "b", lease.Grace(0)) })
		}, code: lease.ErrBroken, which: "b", called: true},
		{what: "no progress", o: session.RunOptions{ProgressTimeout: time.Minute}, code: lease.ErrNoProgress, which: "a", called: true},
		{what: "the first is lost while the last is waited for", change: func(a *ledgerOf) {
			a.silent = "a"
			_, _ = a.Authority.Do(context.Background(), "c", lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Duration: lease.Infinite})
		}, code: lease.ErrStopWindow, which: "a"},
		{what: "the last can never be acquired", wrap: func(ls []lease.Lease) { ls[2] = impossible{ls[2].(*session.Session)} }, code: lease.ErrOwner, which: "c"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newLedger()
				if c.change != nil {
					c.change(a)
				}
				ls := a.all(t, "a", "b", "c")
				if c.wrap != nil {
					c.wrap(ls)
				}
				called, again := false, 0
				c.o.Again = func(error) bool { again++; return false }
				err := session.RunAll(t.Context(), ls, func(ctx context.Context, toks []lease.Token) error {
					called = true
					return waitFor(ctx, toks)
				}, &c.o)
				if !errors.Is(err, c.code) || !strings.Contains(err.Error(), `"`+c.which+`"`) || called != c.called {
					t.Errorf("f was called: %v; RunAll returns %v", called, err)
				}
				if want := c.code != lease.ErrOwner; again > 1 || (again == 1) != want {
					t.Errorf("Again was called %d times", again)
				}
				for _, l := range ls {
					if l.CheckAlive() {
						t.Error("a lease is held after RunAll")
					}
				}
				for _, name := range []string{"a", "b"} {
					if res, err := lease.Inspect(t.Context(), a, name); err != nil || res.Record.State.Locked() {
						t.Errorf("%s: %v, %v", name, res.Record.State, err)
					}
				}
			})
		})
	}
}

// An impossible lease has an owner that no authority accepts.
type impossible struct{ *session.Session }

func (i impossible) AcquireWithToken(context.Context) (lease.Token, bool, error) {
	return "", false, &lease.OpError{Op: "acquire", Name: i.Name(), Err: lease.ErrOwner}
}

// Work without progress loses all of its leases at once, even if it ignores its context.
func TestRunAllStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := newLedger().all(t, "a", "b", "c")
		err := session.RunAll(t.Context(), ls, func(context.Context, []lease.Token) error {
			time.Sleep(time.Minute + time.Second)
			for i, l := range ls {
				if l.CheckAlive() {
					t.Errorf("lease %d is held although its work has made no progress", i)
				}
			}
			return nil
		}, &session.RunOptions{ProgressTimeout: time.Minute})
		if !errors.Is(err, lease.ErrNoProgress) {
			t.Errorf("RunAll returns %v", err)
		}
	})
}

// After a loss, RunAll contends for all leases again. After a take-over of any of them it does not.
func TestRunAllAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLedger()
		o := &session.Options{Owner: "host", TakeOver: true}
		ls := []lease.Lease{a.open(t, "a", nil), a.open(t, "b", o)}
		rival, terms := a.open(t, "b", o), 0
		err := session.RunAll(t.Context(), ls, func(ctx context.Context, toks []lease.Token) error {
			switch terms++; terms {
			case 1:
				_, _ = lease.Break(ctx, a, "b", lease.Grace(0))
			case 2:
				_, _ = rival.Acquire(context.WithoutCancel(ctx))
			default:
				return errWork
			}
			return waitFor(ctx, toks)
		}, &session.RunOptions{Again: session.AfterLoss})
		if terms != 2 || !errors.Is(err, lease.ErrTakenOver) {
			t.Errorf("%v after %d terms", err, terms)
		}
	})
}

// If the caller ends the context while RunAll waits, RunAll releases what it has and returns the error.
func TestRunAllIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLedger()
		_, _ = a.open(t, "b", nil).Acquire(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := session.RunAll(ctx, a.all(t, "b", "a"), waitFor, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lease.ErrHeldByOther) {
			t.Error(err)
		}
		a.check(t, "acquire b", "acquire a", "release a")
	})
}

func TestRunAllIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newLedger()
		x, y, again := a.open(t, "x", nil), a.open(t, "y", nil), a.open(t, "x", nil)
		for want, ls := range map[string][]lease.Lease{
			"RunAll.ls = []: must not be empty":                                       {},
			"RunAll.ls[1] = nil: must be given":                                       {x, nil},
			`RunAll.ls[2] = "x": must have another name than ls[0]`:                   {x, y, again},
			`RunAll.ls[0] = "": must have a method Name`:                              {struct{ lease.Lease }{x}},
			`RunAll.ls[0] = "x": must not be in use by another call of Run or TryRun`: {x, y},
		} {
			if err := session.Run(t.Context(), x, func(ctx context.Context, _ lease.Token) error {
				return session.RunAll(ctx, ls, waitFor, nil)
			}, nil); !errors.Is(err, lease.ErrOption) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if err := session.RunAll(t.Context(), []lease.Lease{x}, nil, nil); fmt.Sprint(err) != "RunAll.f = nil: must be given" {
			t.Error(err)
		}
	})
}
