package session_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A loss by an outage tells the last error on the way there, and none that a grant has made
// good. SPEC H15.
func TestLossTellsTheLastError(t *testing.T) {
	for _, healed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			h.acquire(t)
			n.meet(lease.ActionRenew, failRequest)
			time.Sleep(15 * time.Second)
			n.meet(lease.ActionRenew, func(ctx context.Context, _ func(context.Context) (lease.Result, error)) (lease.Result, error) {
				if healed {
					return n.Authority.Do(ctx, name, lease.Request{Action: lease.ActionRenew, ID: h.ID()})
				}
				return lease.Result{}, errNet
			})
			if healed {
				time.Sleep(10 * time.Second)
				n.keep(lease.ActionRenew, n.hang)
			} else {
				n.keep(lease.ActionRenew, failRequest)
			}
			time.Sleep(time.Minute)
			lost := h.lostOnce(t, lease.ErrExpired)
			if got := errors.Is(lost, errNet); got == healed {
				t.Errorf("healed: %v, lost: %v", healed, lost)
			}
		})
	}
}

// A loss at the end of a break that was told tells no error: every renewal was answered. SPEC H15.
func TestLossAfterABreakTellsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		h.acquire(t)
		n.breaks(t, 15*time.Second)
		time.Sleep(time.Minute)
		if lost := h.lostOnce(t, lease.ErrBroken); lost.Err != nil {
			t.Errorf("lost: %v", lost.Err)
		}
	})
}

// If a hook ends its goroutine, as t.FailNow does, no call waits forever. SPEC H1.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, &session.Options{Trace: &session.Trace{
			Acquire:  func(session.AcquireInfo) { runtime.Goexit() },
			Released: func(session.ReleaseInfo) { runtime.Goexit() },
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if ok, err := h.Acquire(ctx); !ok || err != nil {
			t.Errorf("acquire: %v, %v", ok, err)
		}
		began := time.Now()
		if err := h.Release(ctx); err != nil || time.Since(began) != 0 {
			t.Errorf("release: %v after %v", err, time.Since(began))
		}
		if r := n.record(t); r.State != lease.Available {
			t.Errorf("the record is %+v", r)
		}
	})
}

// Close waits for the hook that is told of a request that was given up, though the request has
// returned meanwhile. SPEC H18.
func TestCloseWaitsForTheHookOfWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var hook atomic.Bool // is under way
		h := n.open(t, &session.Options{Trace: &session.Trace{Acquire: func(session.AcquireInfo) {
			hook.Store(true)
			time.Sleep(time.Minute)
			hook.Store(false)
		}}})
		n.meet(lease.ActionAcquire, func(context.Context, func(context.Context) (lease.Result, error)) (lease.Result, error) {
			time.Sleep(15 * time.Second) // given up after 10 s
			return lease.Result{}, errNet
		})
		go func() { _, _ = h.Acquire(context.Background()) }()
		time.Sleep(20 * time.Second)
		if synctest.Wait(); !hook.Load() {
			t.Fatal("the hook is not under way")
		}
		if err := h.Close(context.Background()); err != nil || hook.Load() {
			t.Errorf("close: %v; the hook is under way: %v", err, hook.Load())
		}
	})
}

// A Session that New did not make says so, every time.
func TestZeroSession(t *testing.T) {
	var s session.Session
	for what, call := range map[string]func(){
		"Acquire":    func() { _, _ = s.Acquire(t.Context()) },
		"Release":    func() { _ = s.Release(t.Context()) },
		"Close":      func() { _ = s.Close(t.Context()) },
		"Wait":       func() { _ = s.Wait(t.Context()) },
		"OnLost":     func() { s.OnLost(func(error) {}) },
		"ID":         func() { s.ID() },
		"Owner":      func() { s.Owner() },
		"Settle":     func() { _ = s.Settle(t.Context()) },
		"TryAcquire": func() { _, _, _ = s.TryAcquire(t.Context()) },
		"HandOver":   func() { _ = s.HandOver(t.Context(), lease.ID{9}) },
		"WhileHeld":  func() { s.WhileHeld(t.Context()) },
		"OnBreaking": func() { s.OnBreaking(func(time.Time) {}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "New did not make") {
					t.Errorf("%s: %v", what, text)
				}
			}()
			call()
			t.Errorf("%s returned", what)
		}()
	}
	_, held := s.Until()
	_, confirmed := s.LastConfirmed()
	if s.CheckAlive() || s.Token() != "" || s.Name() != "" || held || confirmed {
		t.Error("alive")
	}
}

// A nil handler is refused before a loss finds it.
func TestNilHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := overMemory().open(t, nil)
		defer func() {
			if recover() == nil {
				t.Error("taken")
			}
			h.acquire(t)
		}()
		h.OnLost(nil)
	})
}

// A handler that is registered after U is not called for that loss, even if the Session has not
// detected the loss yet. SPEC H16.
func TestHandlerRegisteredAtU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := overMemory(), &frozen{now: time.Now()}
		h := n.open(t, &session.Options{Clock: c})
		h.acquire(t)
		c.step(time.Hour)
		told := false
		h.OnLost(func(error) { told = true })
		synctest.Wait()
		h.lostOnce(t, lease.ErrExpired)
		if told {
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

// A release that failed is logged as failed.
func TestFailedReleaseIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := overMemory()
		h := n.open(t, &session.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		h.acquire(t)
		n.meet(lease.ActionRelease, failRequest)
		if err := h.Release(t.Context()); !errors.Is(err, errNet) {
			t.Errorf("release: %v", err)
		}
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "release failed") || strings.Count(text, "\n") != 1 {
			t.Errorf("logged: %q", text)
		}
		h.release(t)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 {
			t.Errorf("logged: %q", text)
		}
	})
}

// A lost watch frees its resources at once.
func TestLostWatchIsFreed(t *testing.T) {
	for _, holds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := &losing{Authority: lease.NewAuthority(memory.New(nil))}
			n := over(w)
			holder, other := n.open(t, &session.Options{Watch: holds}), n.open(t, nil)
			holder.acquire(t)
			if !holds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				go func() { _ = other.Wait(ctx) }()
			}
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if w.begun.Load() < 10 || w.begun.Load()-w.ended.Load() > 1 {
				t.Errorf("%d watches were begun, %d are freed", w.begun.Load(), w.ended.Load())
			}
			if err := holder.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// losing is an authority that loses every watch after a second.
type losing struct {
	lease.Authority
	begun, ended atomic.Int32
}

func (l *losing) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	l.begun.Add(1)
	context.AfterFunc(ctx, func() { l.ended.Add(1) })
	c := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(c) })
	return c, nil
}

// An authority that never answers, whatever the context, is kept busy with no more than so many
// questions.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h := n.open(t, nil)
		n.keep(lease.ActionRead, n.hang)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		for ctx.Err() == nil {
			_ = h.Wait(ctx)
		}
		if most := n.together(lease.ActionRead); most > 64 || most < 2 {
			t.Errorf("%d questions at once", most)
		}
	})
}
