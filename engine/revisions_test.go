package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/session"
)

// A break by another Store leaves a holder with Watch most of the grace, however long ago its last renewal
// was. SPEC H13.
func TestGraceThatIsLeft(t *testing.T) {
	const duration, grace, window = 30 * time.Second, 20 * time.Second, 5 * time.Second
	for _, c := range []struct {
		what   string
		o      session.Options
		hide   bool          // the engine is not a RevisionReader
		others bool          // the Store renews another lease each second
		late   bool          // the watch sends nothing
		least  time.Duration // from the break to the end of the work
	}{
		{what: "a watch", o: session.Options{Watch: true}, least: grace - window - duration/15},
		{what: "a watch beside another lease", o: session.Options{Watch: true}, others: true, least: grace - window - 1100*time.Millisecond},
		{what: "a watch without Revisions", o: session.Options{Watch: true}, hide: true, least: grace - window - 10*time.Second},
		{what: "a late watch", o: session.Options{Watch: true}, late: true, least: grace - window - 10*time.Second},
		{what: "no watch", least: grace - window - 10*time.Second},
	} {
		for after := time.Duration(0); after < 10*time.Second; after += 700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				var own engine.Backend = e
				if c.hide {
					own = struct{ engine.Backend }{e}
				}
				s := newStore(t, own, engine.Options{})
				c.o.Duration, c.o.StopWindow = duration, window
				l := hold(t, s.Authority(), c.o)
				if c.others {
					o, err := session.New(s.Authority(), "another", &session.Options{Duration: 3 * time.Second})
					if err != nil {
						t.Fatal(err)
					}
					defer o.Close(context.Background())
					if ok, err := o.Acquire(t.Context()); !ok {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute + after)
				held, done := l.WhileHeld(t.Context())
				defer done()
				if c.late {
					e.mu.Lock()
					clear(e.watches)
					e.mu.Unlock()
				}
				broken := time.Now()
				if _, err := lease.Break(t.Context(), newStore(t, e, engine.Options{}).Authority(), name, lease.Grace(grace)); err != nil {
					t.Fatal(err)
				}
				<-held.Done()
				if left := time.Since(broken); left < c.least-200*time.Millisecond || left > grace-window {
					t.Errorf("%s, a break after %v: %v to stop, want from %v to %v", c.what, after, left, c.least, grace-window)
				}
			})
		}
	}
}

// A Store asks for Revisions only while it holds a watched lease, and not while it writes often.
func TestRevisionsAreSeldomAskedFor(t *testing.T) {
	for _, c := range []struct {
		what        string
		hold, watch bool
		renew       time.Duration
		most        int // the requests of a minute
	}{
		{"a watch of another's lease", false, true, 0, 0},
		{"a lease without a watch", true, false, time.Hour, 0},
		{"a watch of an own lease of 30 s", true, true, time.Hour, 31},
		{"renewals each second", true, true, time.Second, 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake()
			s, other := newStore(t, e, engine.Options{}), newStore(t, e, engine.Options{})
			a := s.Authority()
			if !c.hold {
				a = other.Authority()
			}
			do(t, a, acquire(idA, 30*time.Second), 0)
			if c.watch {
				if _, err := s.Watch(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			if n := e.count(func() {
				for passed := time.Duration(0); passed < time.Minute; passed += time.Second {
					time.Sleep(time.Second)
					if c.renew == time.Second {
						do(t, a, renew(idA), 0)
					}
				}
			}); n > c.most || c.most == 31 && n < 25 {
				t.Errorf("%s: %d requests in a minute, want at most %d", c.what, n, c.most)
			}
		})
	}
}
