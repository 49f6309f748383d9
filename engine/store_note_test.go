package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A contender starts its countdown when Note records a renewal, not when it sends its next request. Note
// cannot give a better lower bound than the last request.
func TestNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		s := newStore(t, e, engine.Options{})
		holder, contender := newStore(t, e, engine.Options{}).Authority(), s.Authority()
		do(t, holder, acquire(idA, 30*time.Second), 0)
		do(t, contender, lease.Request{Action: lease.ActionRead}, 0)
		time.Sleep(10 * time.Second)
		do(t, holder, renew(idA), 0)
		s.Note(name, e.entries[name])
		older := e.entries[name]
		older.Revision--
		older.Left = time.Hour
		s.Note(name, older)
		s.Note("another", e.entries[name]) // a name that the Store has not read

		time.Sleep(20 * time.Second)
		res := do(t, contender, acquire(idB, time.Minute), lease.ErrHeldByOther)
		if left := res.MaxRemaining(); left != 10*time.Second {
			t.Errorf("30 s after the renewal was noted %v are left of 30 s", left)
		}
		if res.MinRemaining > 0 {
			t.Errorf("%v are certain, although the renewal may be as old as the first look", res.MinRemaining)
		}
		time.Sleep(10 * time.Second)
		do(t, contender, acquire(idB, time.Minute), 0)
	})
}

// The grace of a break counts from the last Observe of the holder. An entry without a version changes nothing.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		s := newStore(t, e, engine.Options{})
		do(t, s.Authority(), acquire(idA, 30*time.Second), 0)
		time.Sleep(12 * time.Second)
		if err := s.Observe(t.Context(), name, e.Load); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		do(t, newStore(t, e, engine.Options{}).Authority(), breaks(15*time.Second), 0)
		res := do(t, s.Authority(), lease.Request{Action: lease.ActionRead}, 0)
		if !isNear(res.MinRemaining, 14*time.Second) {
			t.Errorf("%v are certain of a break with a grace of 15s, 1s after the last Observe", res.MinRemaining)
		}
		absent := errors.New("absent")
		for _, want := range []error{nil, absent} {
			err := s.Observe(t.Context(), name, func(context.Context, string) (engine.Entry, error) { return engine.Entry{Revision: 1 << 40}, want })
			if err != want {
				t.Errorf("%v, want the error of the read", err)
			}
		}
		do(t, s.Authority(), release(idA), 0)
	})
}

// If Note records a lease whose duration exceeds the limits of the Store, the lease ends after the longest
// allowed duration, counted from the call of Note. SPEC A7.
func TestNoteKeepsTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		s := newStore(t, e, engine.Options{Limits: lease.Limits{MaxDuration: time.Minute}})
		a := s.Authority()
		do(t, a, lease.Request{Action: lease.ActionRead}, 0)
		do(t, newStore(t, e, engine.Options{}).Authority(), acquire(idA, time.Hour), 0)
		s.Note(name, e.entries[name])
		time.Sleep(time.Minute - 1)
		do(t, a, acquire(idB, time.Minute), lease.ErrHeldByOther)
		time.Sleep(time.Nanosecond)
		do(t, a, acquire(idB, time.Minute), 0)
	})
}
