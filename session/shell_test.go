package session

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// granting is an authority that grants everything.
type granting struct{}

func (granting) Do(_ context.Context, _ string, req lease.Request) (lease.Result, error) {
	r := lease.Record{State: lease.Leased, ID: req.Proposed, Duration: term, Until: origin.Add(term), Epoch: 1}
	if req.Action == lease.ActionRenew {
		r.ID = req.ID
	}
	return lease.Result{Record: r, Now: origin, MinRemaining: term}, nil
}

// A handler that was unregistered before its call began is not called. SPEC H16.
func TestStopBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(granting{}, "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan string, 2)
		stopped := s.onLost.add(func(error) { told <- "stopped" })
		s.onLost.add(func(error) { told <- "kept" })
		dispatched := handlers[error]{slices.Clone(s.onLost.list)}
		if !s.onLost.remove(stopped) || s.onLost.remove(stopped) {
			t.Error("removed once")
		}
		s.mu.Lock()
		dispatch(s, &dispatched, error(lease.ErrLost)) // the calls begin only now
		s.mu.Unlock()
		synctest.Wait()
		if close(told); <-told != "kept" || <-told != "" {
			t.Error("the handler was called")
		}
	})
}

// An alarm that rings for nothing does nothing: before its time, while a renewal is in flight,
// and after the end. SPEC H18, H11.
func TestNeedlessAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &counting{slow: 2 * time.Second}
		s, err := New(a, "n", &Options{Duration: 30 * time.Second, Rand: bits(0)})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		ring := func(want int32, when string) {
			t.Helper()
			s.ring()
			if synctest.Wait(); a.renewals.Load() != want {
				t.Errorf("%d renewals %s, want %d", a.renewals.Load(), when, want)
			}
		}
		until, _ := s.Until() // the authority grants less than was asked for
		next := time.Until(until) / 2
		time.Sleep(next - 1)
		ring(0, "before its time")
		time.Sleep(time.Nanosecond)
		ring(1, "at its time")
		time.Sleep(time.Second)
		ring(1, "while it is in flight")
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		ring(1, "after the release")
	})
}

// counting is granting, which counts renewals and takes its time for them.
type counting struct {
	granting
	slow     time.Duration
	renewals atomic.Int32
}

func (a *counting) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRenew {
		a.renewals.Add(1)
		time.Sleep(a.slow)
	}
	return a.granting.Do(ctx, name, req)
}

// An Acquire whose turn comes when it has become needless makes no request, and gives the turn
// to the next. SPEC H2, H3, H5.
func TestNeedlessAttempt(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(s *Session, cancel context.CancelFunc)
		ok        bool
		is        error
	}{
		{"released", func(s *Session, _ context.CancelFunc) { s.supersede() }, false, lease.ErrReleased},
		{"acquired by another call", func(s *Session, _ context.CancelFunc) {
			s.acquired(s.propose(), s.o.Clock.Now(), s.o.Clock.Now(), leased(s.proposal, term), nil)
		}, true, nil},
		{"ended", func(_ *Session, cancel context.CancelFunc) { cancel() }, false, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(granting{}, "n", nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				superseded := s.supersession()
				c.meanwhile(s, cancel)
				s.turn <- struct{}{}
				a := s.attempt(ctx, superseded)
				<-a.done
				if a.ok != c.ok || !errors.Is(a.err, c.is) || (a.token != "") != c.ok || len(s.turn) != 0 || s.tasks != 0 || s.acquiring != nil {
					t.Errorf("decided %+v; %d tasks", a, s.tasks)
				}
			})
		})
	}
}

// A HandOver ends the Acquire that waits for its turn: it would find its own ID in force, and
// give the hand-over up. SPEC H14.
func TestHandOverSupersedesAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(granting{}, "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.turn <- struct{}{} // something is being settled
		acquired := make(chan error, 1)
		go func() {
			_, err := s.Acquire(t.Context())
			acquired <- err
		}()
		synctest.Wait()
		s.mu.Lock()
		s.acquired(s.propose(), s.o.Clock.Now(), s.o.Clock.Now(), leased(s.proposal, term), nil)
		s.publish()
		s.mu.Unlock()
		given := make(chan error, 1)
		go func() { given <- s.HandOver(t.Context(), other) }()
		synctest.Wait()
		if len(acquired) != 1 || !errors.Is(<-acquired, lease.ErrReleased) {
			t.Error("the acquire still waits")
		}
		<-s.turn
		if err := <-given; err != nil {
			t.Error(err)
		}
	})
}

// What comes of a HandOver says nothing of another one. SPEC H14.
func TestHandOverOfAnother(t *testing.T) {
	s, err := New(granting{}, "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.handing = given
	if err := s.give(t.Context(), own, other); err != nil || s.handing != given {
		t.Errorf("%v; now handing over %v", err, s.handing)
	}
}

// After the end of an incarnation no timer is left, nor what a handler needed. SPEC H18.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(granting{}, "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		handlers := make(chan uint64, 1)
		s.OnLost(func(error) { handlers <- number() })
		for range 3 {
			if ok, err := s.Acquire(t.Context()); !ok {
				t.Fatal(err)
			}
			_, free := s.WhileHeld(t.Context())
			if free(); len(s.contexts) != 0 {
				t.Errorf("left: %v", s.contexts)
			}
			_, free = s.WhileHeld(t.Context())
			defer free()
			s.mu.Lock()
			s.lose(lease.ErrBroken, nil)
			s.unlock()
			synctest.Wait()
			if s.alarm.timer.Stop() || s.handling != 0 || s.tasks != 0 || len(s.contexts) != 0 || len(s.effects) != 0 {
				t.Errorf("left: %+v", s)
			}
			if _, in := handling.numbers.Load(<-handlers); in {
				t.Error("left: the number of a goroutine")
			}
		}
	})
}

// Who waits for the next Release is woken by it, also when others no longer wait, or were woken
// by an earlier one; what nobody waits for is not kept. SPEC H17, H21.
func TestSupersession(t *testing.T) {
	s, err := New(granting{}, "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	woken := s.supersession()
	s.supersede()
	waiting, gone := s.supersession(), s.supersession()
	s.heed(woken)
	s.heed(gone)
	s.supersede()
	for i, c := range []<-chan struct{}{woken, waiting} {
		select {
		case <-c:
		default:
			t.Errorf("number %d is not woken", i)
		}
	}
	s.heed(waiting)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"acquire": func() error { _, err := s.Acquire(done); return err },
		"wait":    func() error { return s.Wait(done) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) || s.superseded != nil || s.heeding != 0 {
			t.Errorf("%s: %v; kept for %d", name, err, s.heeding)
		}
	}
}

// Whoever ends a context of an incarnation while its loss is being told gives it the loss as
// its cause. SPEC H20.
func TestHeldContextThatEndsDuringTheLoss(t *testing.T) {
	s, err := New(granting{}, "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Acquire(t.Context()); !ok {
		t.Fatal(err)
	}
	held, free := s.WhileHeld(t.Context())
	s.mu.Lock()
	s.lose(lease.ErrBroken, nil)
	effects := s.effects
	s.effects = nil
	s.mu.Unlock()
	free()
	if cause := context.Cause(held); !errors.Is(cause, lease.ErrBroken) {
		t.Errorf("the cause is %v", cause)
	}
	for _, f := range effects {
		f()
	}
}

// A release that is certain is not remembered, but for an ID that was told, before it was
// acquired with or after, since somebody may hand the lease over to it. SPEC H14, H17.
func TestSettledDebtsAreForgotten(t *testing.T) {
	for _, c := range []struct{ before, after bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			s, err := New(granting{}, "n", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.before {
				s.ID()
			}
			if ok, err := s.Acquire(t.Context()); !ok {
				t.Fatal(err)
			}
			id := s.held.id
			if c.after {
				s.ID()
			}
			if err := s.Release(t.Context()); err != nil {
				t.Error(err)
			}
			var want []debt
			if c.before || c.after {
				want = []debt{{id: id, shown: true, waived: true}}
			}
			if !slices.Equal(s.unsettled, want) {
				t.Errorf("told %+v, and left: %+v", c, s.unsettled)
			}
		})
	}
}

// What is asked is told to end when its asker no longer waits, and a Session that is closed
// asks nothing. SPEC H19.
func TestAskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(granting{}, "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		superseded := make(chan struct{})
		close(superseded)
		began, ended := time.Now(), make(chan time.Duration, 1)
		hang := func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			ended <- time.Since(began)
			return false, ctx.Err()
		}
		if _, known := ask(t.Context(), s, superseded, hang); known {
			t.Error("an answer of one that hangs")
		}
		if d := <-ended; d != 0 {
			t.Errorf("told to end after %v", d)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer := func(context.Context) (bool, error) { return true, nil }
		if _, known := ask(t.Context(), s, nil, answer); known {
			t.Error("asked when closed")
		}
	})
}

// A machine that slept through U has lost the lease as soon as anybody looks, though no timer
// has run. SPEC H9, H10.
func TestSleptThroughU(t *testing.T) {
	c := &sleeper{now: time.Now()}
	s, err := New(granting{}, "n", &Options{Duration: term, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	s.OnLost(func(err error) { lost <- err })
	if ok, err := s.Acquire(t.Context()); !ok {
		t.Fatal(err)
	}
	began := c.now
	end, _ := s.Until()
	u := end.Sub(began)
	c.now = asleep(t, began, u-1, u-1)
	if !s.CheckAlive() {
		t.Error("lost before U")
	}
	c.now = asleep(t, began, u, u)
	if s.CheckAlive() {
		t.Error("alive at U")
	}
	if tok, ok, err := s.AcquireWithToken(t.Context()); !ok || err != nil || tok == "" {
		t.Errorf("acquire: %v, %v", ok, err)
	}
	if err := <-lost; lease.CodeOf(err) != lease.ErrExpired {
		t.Errorf("lost: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A sleeper is a Clock that stands still.
type sleeper struct{ now time.Time }

func (c *sleeper) Now() time.Time                       { return c.now }
func (c *sleeper) After(time.Duration) <-chan time.Time { return nil }

// A source of randomness that fails costs the jitter, and IDs come from elsewhere. SPEC H6.
func TestRandFails(t *testing.T) {
	s, err := New(granting{}, "n", &Options{Rand: dry{}})
	if err != nil {
		t.Fatal(err)
	}
	a := s.ID()
	s.retire()
	if b := s.ID(); a.IsZero() || a == b {
		t.Errorf("IDs %v and %v", a, b)
	}
	if got := s.shorten(time.Minute, 0.5); got != 45*time.Second {
		t.Errorf("half a minute at random became %v", got)
	}
}

type dry struct{}

func (dry) Read([]byte) (int, error) { return 0, context.Canceled }

// bits is a source of bytes that are all the same.
type bits byte

func (b bits) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// Jitter only ever shortens, by less than the part that is given. SPEC N4.
func TestShorten(t *testing.T) {
	for _, c := range []struct {
		rand bits
		want time.Duration
	}{{0, time.Minute}, {0x7f, time.Minute - 3*time.Second + 11_718_750}, {0xff, time.Minute - 6*time.Second + 1}} {
		s, err := New(granting{}, "n", &Options{Rand: c.rand})
		if err != nil {
			t.Fatal(err)
		}
		got := s.shorten(time.Minute, 0.1)
		if d := got - c.want; d < -12*time.Millisecond || d > 12*time.Millisecond || got > time.Minute || got <= 54*time.Second {
			t.Errorf("%v with %#x, want about %v", got, byte(c.rand), c.want)
		}
	}
}
