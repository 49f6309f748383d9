package session_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A suspended clock stands still until the test sets it, and wakes no goroutine.
type suspended struct{ now atomic.Pointer[time.Time] }

func (c *suspended) Now() time.Time                       { return *c.now.Load() }
func (c *suspended) After(time.Duration) <-chan time.Time { return nil }

// After the computer was suspended, a Session counts the time on the wall clock, before any timer has
// fired. SPEC H10.
func TestNoMethodBelievesThroughASuspension(t *testing.T) {
	var c suspended
	began := time.Now()
	c.now.Store(&began)
	a := memory.New(&memory.Options{Clock: &c}).Authority()
	s, err := session.New(a, name, &session.Options{Clock: &c, Duration: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	first, ok, err := s.AcquireWithToken(t.Context())
	if !ok || err != nil || !s.CheckAlive() {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	after := shorthand.Asleep(t, began, time.Minute, time.Minute)
	c.now.Store(&after)
	if s.CheckAlive() {
		t.Error("CheckAlive is true after a suspension of a minute, and the lease lasts 30s")
	}
	if tok := s.Token(); tok != "" {
		t.Errorf("Token returns %q", tok)
	}
	if until, held := s.Until(); held {
		t.Errorf("Until returns %v, true", until)
	}
	if again, _, _ := s.AcquireWithToken(t.Context()); again == first {
		t.Error("an acquire returns the token of the lease that has ended")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
