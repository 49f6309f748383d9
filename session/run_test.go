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

// Run calls the function only while the lease is held, with the token of the lease. Run then
// releases the lease and returns the error of the function. SPEC N1, N2.
func TestRun(t *testing.T) {
	for _, want := range []error{nil, errWork} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			err := session.Run(context.Background(), h, func(ctx context.Context, tok lease.Token) error {
				if h.alive(t, true); tok != h.Token() || tok == "" || ctx.Err() != nil {
					t.Errorf("token %v, held %v; %v", tok, h.Token(), ctx.Err())
				}
				time.Sleep(time.Hour)
				if h.alive(t, true); ctx.Err() != nil {
					t.Errorf("ended: %v", context.Cause(ctx))
				}
				return want
			}, nil)
			if err != want {
				t.Errorf("run: %v, want %v", err, want)
			}
			if h.alive(t, false); n.record(t).State != lease.Available {
				t.Errorf("the record is %+v", n.record(t))
			}
			h.notLost(t)
		})
	}
}

// A loss ends the context of the function. The loss is the cause of the context and is part of the
// error of Run. Run waits for the function. SPEC N1, N2.
func TestRunLoses(t *testing.T) {
	for _, c := range []struct {
		name   string
		lose   func(t *testing.T, n *network)
		reason lease.Code
		own    error
	}{
		{"broken", func(t *testing.T, n *network) { n.breaks(t, 0) }, lease.ErrBroken, nil},
		{"expired", func(t *testing.T, n *network) { n.keep(lease.ActionRenew, failRequest) }, lease.ErrStopWindow, errWork},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				returned := false
				err := session.Run(context.Background(), h, func(ctx context.Context, _ lease.Token) error {
					c.lose(t, n)
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), c.reason) {
						t.Errorf("the cause is %v", context.Cause(ctx))
					}
					time.Sleep(time.Minute)
					returned = true
					return c.own
				}, nil)
				if c.reason == lease.ErrStopWindow { // the lease was lost while the function was stopping
					h.lostOnce(t, lease.ErrExpired)
				} else {
					h.lostOnce(t, c.reason)
				}
				if !returned {
					t.Error("Run returned before its function")
				}
				if !errors.Is(err, lease.ErrLost) || !errors.Is(err, c.reason) {
					t.Errorf("run: %v", err)
				}
				if c.own != nil && !errors.Is(err, c.own) {
					t.Errorf("run: %v, without the error of the function", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		err := session.Run(context.Background(), h, func(ctx context.Context, _ lease.Token) error {
			n.breaks(t, 0)
			<-ctx.Done()
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}, nil)
		if want := "stopped: " + h.lostOnce(t, lease.ErrBroken).Error(); err.Error() != want {
			t.Errorf("run: %v, want %v", err, want) // the error has the loss once, not twice
		}
	})
}

// If a process is suspended while the function runs, the lease is lost although no timer has fired.
// Run returns this loss too. SPEC N2, H9.
func TestRunOfAProcessThatWasStopped(t *testing.T) {
	for _, own := range []error{nil, errWork} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, &session.Options{Clock: timerless{}})
			err := session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
				time.Sleep(time.Hour)
				if ctx.Err() != nil {
					t.Errorf("ended: %v", context.Cause(ctx))
				}
				return own
			}, nil)
			if lost := h.lostOnce(t, lease.ErrExpired); !errors.Is(err, lost) || own != nil && !errors.Is(err, own) {
				t.Errorf("run: %v", err)
			}
		})
	}
}

// timerless is a Clock that returns the time, but whose timers never fire.
type timerless struct{}

func (timerless) Now() time.Time                       { return time.Now() }
func (timerless) After(time.Duration) <-chan time.Time { return nil }

// The function of Run may call Release or HandOver with its own context. The call ends the context.
// SPEC N2, H17.
func TestRunGivesUpInTheFunction(t *testing.T) {
	for _, c := range []struct {
		name string
		act  lease.Action
		give func(ctx context.Context, h, to *holder) error
	}{
		{"released", lease.ActionRelease, func(ctx context.Context, h, _ *holder) error { return h.Release(ctx) }},
		{"handed over", lease.ActionChange, func(ctx context.Context, h, to *holder) error { return h.HandOver(ctx, to.ID()) }},
	} {
		for _, f := range []struct {
			name  string
			fault func(n *network) fault
			want  error
			took  time.Duration
		}{
			{"", func(*network) fault { return slow(time.Second, time.Second) }, nil, 2 * time.Second},
			{", in vain", func(*network) fault { return failRequest }, errNet, 0},
			{", unheard", func(n *network) fault { return n.hang }, errNoAnswer, 10 * time.Second}, // twice RequestTimeout
		} {
			t.Run(c.name+f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h, to := n.open(t, nil), n.open(t, nil)
					n.meet(c.act, f.fault(n))
					_ = session.Run(t.Context(), h, func(ctx context.Context, _ lease.Token) error {
						ctx, cancel := context.WithCancel(ctx) // a context that is derived from the function's context
						defer cancel()
						began := time.Now()
						err := c.give(ctx, h, to)
						if !matches(err, f.want) || time.Since(began) != f.took || !errors.Is(context.Cause(ctx), lease.ErrReleased) {
							t.Errorf("%v after %v; the context ended because of %v", err, time.Since(began), context.Cause(ctx))
						}
						n.meet(lease.ActionRelease, slow(time.Second, 0))
						if err := h.Release(ctx); f.took == 10*time.Second && !errors.Is(err, context.Canceled) {
							t.Errorf("released once more, with a context that was done: %v", err)
						}
						return nil
					}, nil)
					h.notLost(t)
				})
			})
		}
	}
}

// If the context of Run ends while the function runs, only the function's context ends. Run renews
// the lease until the function has returned, and then releases it. SPEC N2, N3.
func TestRunContextEndsInTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		err := session.Run(ctx, h, func(held context.Context, _ lease.Token) error {
			cancel()
			<-held.Done()
			time.Sleep(10 * time.Minute)
			h.alive(t, true)
			return held.Err()
		}, &session.RunOptions{Again: func(error) bool { t.Error("asked to go on"); return true }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
		if h.alive(t, false); n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
		h.notLost(t)
	})
}

// If the context ends while Run contends, Run returns the error of the context and leaves no lease
// locked. SPEC N3.
func TestRunContextEndsBefore(t *testing.T) {
	never := func(context.Context, lease.Token) error { panic("called") }
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := session.Run(ctx, h, never, nil); err != context.Canceled || n.count() != 0 {
			t.Errorf("run: %v, after %d requests", err, n.count())
		}
		n.act(t, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{9}, Duration: lease.Infinite})
		for _, f := range []fault{nil, loseAnswer, failRequest} {
			n.keep(lease.ActionAcquire, f)
			ctx, cancel := context.WithTimeout(context.Background(), 1234*time.Millisecond)
			began := time.Now()
			if err := session.Run(ctx, h, never, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 1234*time.Millisecond {
				t.Errorf("run: %v after %v", err, time.Since(began))
			}
			cancel()
		}
	})
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

// If the function of Run releases the lease itself, Run reports no loss. SPEC N2.
func TestRunReleasesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := overMemory().open(t, nil)
		err := session.Run(context.Background(), h, func(ctx context.Context, _ lease.Token) error {
			h.release(t)
			<-ctx.Done()
			return nil
		}, nil)
		if err != nil {
			t.Errorf("run: %v", err)
		}
	})
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
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = session.Run(context.Background(), h, func(context.Context, lease.Token) error { panic("boom") }, nil)
		}()
		if h.alive(t, false); n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = session.Run(context.Background(), h, func(context.Context, lease.Token) error { runtime.Goexit(); return nil }, nil)
			t.Error("returned")
		}()
		<-done
		if h.alive(t, false); n.record(t).State != lease.Available {
			t.Errorf("the record is %+v", n.record(t))
		}
	})
}

// If the release fails, Run returns its error. If the authority hangs, Run waits for the
// ReleaseTimeout only.
func TestRunReleaseFails(t *testing.T) {
	work := func(context.Context, lease.Token) error { return errWork }
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.meet(lease.ActionRelease, failRequest)
		if err := session.Run(context.Background(), h, work, nil); !errors.Is(err, errWork) || !errors.Is(err, errNet) {
			t.Errorf("run: %v", err)
		}
		h.release(t)
		n.meet(lease.ActionRelease, n.hang)
		began := time.Now()
		err := session.Run(context.Background(), h, work, &session.RunOptions{ReleaseTimeout: 3 * time.Second})
		if !matches(err, errNoAnswer) || time.Since(began) != 3*time.Second {
			t.Errorf("run: %v after %v", err, time.Since(began))
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
	synctest.Test(t, func(t *testing.T) { // the context ends between two terms
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		err := session.Run(ctx, h, func(context.Context, lease.Token) error { return errWork },
			&session.RunOptions{AcquireInterval: time.Hour, Again: func(error) bool {
				time.AfterFunc(time.Minute, cancel)
				return true
			}})
		if err != context.Canceled { // Again has handled the error of the term
			t.Errorf("run: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the context ends while another holder has the lease
		n := overMemory()
		h := n.open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		err := session.Run(ctx, h, func(context.Context, lease.Token) error { return errWork },
			&session.RunOptions{Again: func(error) bool {
				n.open(t, nil).acquire(t)
				time.AfterFunc(time.Minute, cancel)
				return true
			}})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, lease.ErrHeldByOther) || errors.Is(err, errWork) {
			t.Errorf("run: %v", err)
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

// If Run gives up contending and its last attempt failed, Run returns the error of the attempt.
// SPEC N3.
func TestRunTellsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			fault fault
			want  bool
		}{{"unreachable", failRequest, true}, {"held", nil, false}} {
			n := overMemory()
			n.open(t, nil).acquire(t)
			n.keep(lease.ActionAcquire, c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			tok, err := session.AcquireWait(ctx, n.open(t, nil), nil)
			if tok != "" || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNet) != c.want {
				t.Errorf("%s: %q, %v", c.name, tok, err)
			}
		}
	})
}

// An untold is a Lease that passes no cause to its handlers when it is lost, as a Lease of Akka may
// do.
type untold struct{ s *session.Session }

func (u untold) Acquire(ctx context.Context) (bool, error) { return u.s.Acquire(ctx) }
func (u untold) Release(ctx context.Context) error         { return u.s.Release(ctx) }
func (u untold) CheckAlive() bool                          { return u.s.CheckAlive() }
func (u untold) OnLost(f func(error)) func() bool          { return u.s.OnLost(func(error) { f(nil) }) }

// SPEC N1: Run reports every loss of every kind of Lease.
func TestRunTellsUntoldLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := overMemory()
		s, err := session.New(net, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = session.Run(t.Context(), untold{s}, func(ctx context.Context, _ lease.Token) error {
			net.act(t, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
			<-ctx.Done()
			return nil
		}, nil)
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("Run: %v, want %v", err, lease.ErrLost)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// If the function of Run calls Run with another lease, each Run reports only the loss of its own
// lease.
func TestRunInsideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := overMemory()
		outer, err := session.New(net, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := session.New(overMemory(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var within error
		err = session.Run(t.Context(), outer, func(ctx context.Context, _ lease.Token) error {
			within = session.Run(ctx, inner, func(ctx context.Context, _ lease.Token) error {
				net.act(t, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
				<-ctx.Done()
				return nil
			}, nil)
			return nil
		}, nil)
		if !errors.Is(err, lease.ErrBroken) || within != nil {
			t.Errorf("outer: %v, want broken; inner: %v, want nil", err, within)
		}
		if err := errors.Join(inner.Close(t.Context()), outer.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// If the function of Run loses another lease by a take-over, Run calls Again, because its own lease
// was not taken over. SPEC N1.
func TestRunWhoseInnerLeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, shared := overMemory().open(t, nil), overMemory()
		inner, other := shared.open(t, &session.Options{Owner: "host", TakeOver: true}), shared.open(t, &session.Options{Owner: "host", TakeOver: true})
		var asked []error
		terms := 0
		err := session.Run(t.Context(), outer, func(ctx context.Context, _ lease.Token) error {
			if terms++; terms == 2 {
				return errWork
			}
			time.AfterFunc(time.Second, func() { _, _ = other.Acquire(context.Background()) })
			return session.Run(ctx, inner, func(ctx context.Context, _ lease.Token) error { <-ctx.Done(); return nil }, nil)
		}, &session.RunOptions{Again: func(err error) bool { asked = append(asked, err); return err != errWork }})
		if err != errWork || terms != 2 || len(asked) != 2 || !errors.Is(asked[0], lease.ErrTakenOver) {
			t.Errorf("%v after %d terms; asked about %v", err, terms, asked)
		}
	})
}

// If an attempt of TryRun was granted but the context has ended or the grant came too late, TryRun
// releases the lease before it returns. The cause of the context does not matter. SPEC N3.
func TestTryRunReleases(t *testing.T) {
	// The fault grantedTooLate leaves no remaining time of a grant.
	grantedTooLate := func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
		res, err := send(ctx)
		res.MinRemaining = 0
		return res, err
	}
	for what, c := range map[string]struct {
		answer fault
		cause  error // the cause with which the context ends after a second; if nil, the context does not end
	}{
		"a cause without a code": {slow(0, 2*time.Second), errWork},
		"a cause with a code":    {slow(0, 2*time.Second), lease.ErrReleased},
		"a grant that is late":   {grantedTooLate, nil},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				n.meet(lease.ActionAcquire, c.answer)
				n.meet(lease.ActionRelease, slow(300*time.Millisecond, 0))
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cause != nil {
					time.AfterFunc(time.Second, func() { cancel(c.cause) })
				}
				ran, err := session.TryRun(ctx, h, idle, nil)
				if ran || err == nil || n.record(t).State != lease.Available {
					t.Errorf("%v, %v; the lease is %v", ran, err, n.record(t).State)
				}
			})
		})
	}
}
