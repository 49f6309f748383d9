package session_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// withContext are the calls of methods that need a context.
var withContext = map[string]func(s *session.Session, ctx context.Context){
	"Acquire":           func(s *session.Session, ctx context.Context) { _, _ = s.Acquire(ctx) },
	"AcquireWithToken":  func(s *session.Session, ctx context.Context) { _, _, _ = s.AcquireWithToken(ctx) },
	"AcquireUnlessHeld": func(s *session.Session, ctx context.Context) { _, _, _ = s.AcquireUnlessHeld(ctx) },
	"Release":           func(s *session.Session, ctx context.Context) { _ = s.Release(ctx) },
	"ReleaseUncertain":  func(s *session.Session, ctx context.Context) { _ = s.ReleaseUncertain(ctx) },
	"HandOver":          func(s *session.Session, ctx context.Context) { _ = s.HandOver(ctx, lease.ID{9}) },
	"Wait":              func(s *session.Session, ctx context.Context) { _ = s.Wait(ctx) },
	"WhileHeld":         func(s *session.Session, ctx context.Context) { s.WhileHeld(ctx) },
	"Close":             func(s *session.Session, ctx context.Context) { _ = s.Close(ctx) },
}

// textOf returns the text with which a call panics, or an empty text if it returns.
func textOf(call func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	call()
	return ""
}

// A nil context or handler is a mistake in the program. Every method panics with an explanation before it
// changes anything.
func TestNil(t *testing.T) {
	calls := maps.Clone(withContext)
	calls["Run"] = func(s *session.Session, ctx context.Context) { _ = session.Run(ctx, s, idle, nil) }
	calls["TryRun"] = func(s *session.Session, ctx context.Context) { _, _ = session.TryRun(ctx, s, idle, nil) }
	calls["AcquireWait"] = func(s *session.Session, ctx context.Context) { _, _ = session.AcquireWait(ctx, s, nil) }
	calls["OnLost"] = func(s *session.Session, _ context.Context) { s.OnLost(nil) }
	calls["OnBreaking"] = func(s *session.Session, _ context.Context) { s.OnBreaking(nil) }
	for what, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			for _, held := range []bool{false, true} {
				if held {
					h.acquire(t)
				}
				before := n.count()
				if text := textOf(func() { call(h.Session, nil) }); !strings.Contains(text, "nil") || !strings.Contains(text, " ") {
					t.Errorf("%s: held %v: panicked with %q, want a sentence", what, held, text)
				}
				synctest.Wait()
				if h.alive(t, held); n.count() != before {
					t.Errorf("%s: held %v: %d requests were sent", what, held, n.count()-before)
				}
			}
			time.Sleep(time.Hour)
			h.alive(t, true)
			h.release(t)
			h.acquire(t) // the Session is not closed
		})
	}
}

// If New did not make a Session, each call of a method panics with a text that says so.
func TestZeroSession(t *testing.T) {
	var s session.Session
	calls := map[string]func(){
		"OnLost":     func() { s.OnLost(func(error) {}) },
		"OnBreaking": func() { s.OnBreaking(func(time.Time) {}) },
		"ID":         func() { s.ID() },
		"Owner":      func() { s.Owner() },
	}
	for what, call := range withContext {
		calls[what] = func() { call(&s, t.Context()) }
	}
	for what, call := range calls {
		if text := textOf(call); !strings.Contains(text, "New did not make") {
			t.Errorf("%s: %q", what, text)
		}
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
