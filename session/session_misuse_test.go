package session_test

import (
	"context"
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
