package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A nil context is a mistake in the program. Every method panics with an explanation before it
// changes anything.
func TestNilContext(t *testing.T) {
	var none context.Context
	for what, call := range map[string]func(h *holder){
		"Acquire":           func(h *holder) { _, _ = h.Acquire(none) },
		"AcquireWithToken":  func(h *holder) { _, _, _ = h.AcquireWithToken(none) },
		"AcquireUnlessHeld": func(h *holder) { _, _, _ = h.AcquireUnlessHeld(none) },
		"Release":           func(h *holder) { _ = h.Release(none) },
		"Settle":            func(h *holder) { _ = h.Settle(none) },
		"HandOver":          func(h *holder) { _ = h.HandOver(none, lease.ID{9}) },
		"Wait":              func(h *holder) { _ = h.Wait(none) },
		"WhileHeld":         func(h *holder) { h.WhileHeld(none) },
		"Close":             func(h *holder) { _ = h.Close(none) },
		"Run":               func(h *holder) { _ = session.Run(none, h, idle, nil) },
		"TryRun":            func(h *holder) { _, _ = session.TryRun(none, h, idle, nil) },
		"AcquireWait":       func(h *holder) { _, _ = session.AcquireWait(none, h, nil) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := overMemory()
				h := n.open(t, nil)
				for _, held := range []bool{false, true} {
					if held {
						h.acquire(t)
					}
					before := n.count()
					func() {
						defer func() {
							text, ok := recover().(string)
							if !ok || !strings.Contains(text, "nil") || !strings.Contains(text, " ") {
								t.Errorf("held %v: panicked with %q, want a sentence", held, text)
							}
						}()
						call(h)
						t.Errorf("held %v: returned", held)
					}()
					synctest.Wait()
					if h.alive(t, held); n.count() != before {
						t.Errorf("held %v: %d requests were sent", held, n.count()-before)
					}
				}
				time.Sleep(time.Hour)
				h.alive(t, true)
				h.release(t)
				h.acquire(t) // the Session is not closed
			})
		})
	}
}

// A closed Session has no ID, and HandOver does not accept the zero ID that it returns.
func TestIDOfAClosedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		h, closed := n.open(t, nil), n.open(t, nil)
		closed.ID()
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.acquire(t)
		id := closed.ID()
		if !id.IsZero() {
			t.Errorf("the ID is %v", id)
		}
		field := new(lease.FieldError)
		if err := h.HandOver(t.Context(), id); !errors.As(err, &field) || field.Field != "to" {
			t.Errorf("hand over: %v", err)
		}
		h.alive(t, true)
	})
}

// The record has the owner of the holder, also after a take-over. After a hand-over, the record has
// the owner of the sender until the receiver acquires the lease. SPEC, section H.
func TestRecordCarriesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		owner := func(want string) {
			t.Helper()
			if r := n.record(t); r.Owner != want || want == "" {
				t.Errorf("the record's owner is %q, want %q", r.Owner, want)
			}
		}
		a, b := n.open(t, nil), n.open(t, &session.Options{Owner: "b"})
		taker := n.open(t, &session.Options{Owner: "b", TakeOver: true})
		a.acquire(t)
		owner(a.Owner())
		a.handOver(t, b.ID())
		owner(a.Owner())
		b.acquire(t)
		owner("b")
		taker.acquire(t)
		owner("b")
	})
}

// If the authority always answers that one nanosecond is left, Wait pauses between its reads.
// SPEC H21.
func TestWaitForANanosecond(t *testing.T) {
	for _, watched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.open(t, nil).acquire(t)
			n.keep(lease.ActionRead, func(ctx context.Context, send func(context.Context) (lease.Result, error)) (lease.Result, error) {
				res, err := send(ctx)
				res.Record.State, res.Record.Until = lease.Leased, res.Now.Add(1)
				return res, err
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			wait := h.Wait
			if !watched {
				s, err := session.New(blind{n}, name, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(context.Background())
				wait = s.Wait
			}
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait: %v", err)
			}
			if looks := n.count(lease.ActionRead); looks > 2*3600/2.5 { // at the end, the reads are one RetryDelay apart
				t.Errorf("%d looks in an hour", looks)
			}
		})
	}
}

// A method panics if its context is nil, as package context does. After the panic, the mutex of the
// Session must not stay locked, because the caller may recover.
func TestReleaseOfNilContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := session.New(overMemory(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Release(nil) did not panic")
				}
			}()
			//lint:ignore SA1012 that is the case
			_ = s.Release(nil)
		}()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// If New did not make a Session, each call of a method panics with a text that says so.
func TestZeroSession(t *testing.T) {
	var s session.Session
	for what, call := range map[string]func(){
		"Acquire":           func() { _, _ = s.Acquire(t.Context()) },
		"Release":           func() { _ = s.Release(t.Context()) },
		"Close":             func() { _ = s.Close(t.Context()) },
		"Wait":              func() { _ = s.Wait(t.Context()) },
		"OnLost":            func() { s.OnLost(func(error) {}) },
		"ID":                func() { s.ID() },
		"Owner":             func() { s.Owner() },
		"Settle":            func() { _ = s.Settle(t.Context()) },
		"AcquireUnlessHeld": func() { _, _, _ = s.AcquireUnlessHeld(t.Context()) },
		"HandOver":          func() { _ = s.HandOver(t.Context(), lease.ID{9}) },
		"WhileHeld":         func() { s.WhileHeld(t.Context()) },
		"OnBreaking":        func() { s.OnBreaking(func(time.Time) {}) },
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
	if s.CheckAlive() || held || confirmed {
		t.Errorf("CheckAlive is %v, there is a U: %v, a confirmation: %v", s.CheckAlive(), held, confirmed)
	}
	if s.Token() != "" || s.Name() != "" {
		t.Errorf("the token is %q, and the name %q", s.Token(), s.Name())
	}
}
