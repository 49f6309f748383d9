package session

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// A suspended clock stands still until the test sets it, and wakes no goroutine.
type suspended struct{ now atomic.Pointer[time.Time] }

func (c *suspended) Now() time.Time                       { return *c.now.Load() }
func (c *suspended) After(time.Duration) <-chan time.Time { return nil }

// A recordAuthority keeps the record of one lease, and has the time of its clock.
type recordAuthority struct {
	*suspended
	mu     sync.Mutex
	record lease.Record
}

func (a *recordAuthority) Do(_ context.Context, _ string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Now().Round(0)
	next, err := lease.Step(a.record, req, now)
	if err == nil {
		a.record = next
	}
	return lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}, err
}

// After the computer was suspended, a Session counts the time on the wall clock, before any timer has
// fired. SPEC H10.
func TestNoMethodBelievesThroughASuspension(t *testing.T) {
	var c suspended
	began := time.Now()
	c.now.Store(&began)
	s, err := New(&recordAuthority{suspended: &c}, "jobs/nightly", &Options{Clock: &c, Duration: 30 * time.Second})
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
