package observe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// A contender counts from when a renewal was noted, and not from when it asks again. What was noted
// makes nothing more certain than an exchange did.
func TestNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		s := newStore(t, e, observe.Options{})
		holder, contender := newStore(t, e, observe.Options{}).Authority(), s.Authority()
		do(t, holder, acquire(idA, 30*time.Second), 0)
		do(t, contender, lease.Request{Action: lease.ActionRead}, 0)
		time.Sleep(10 * time.Second)
		do(t, holder, renew(idA), 0)
		s.Note(name, e.entries[name])
		older := e.entries[name]
		older.Revision--
		older.Left = time.Hour
		s.Note(name, older)
		s.Note("another", e.entries[name]) // of a name that nobody has looked at

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

// The Limits bound what programs of this library claim, and not what others do.
func TestForeignEntriesAreNotBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		a := newStore(t, e, observe.Options{Limits: lease.Limits{MaxDuration: time.Minute}}).Authority()
		do(t, newStore(t, e, observe.Options{}).Authority(), acquire(idA, time.Hour), 0)
		foreign := e.entries[name]
		foreign.Foreign = true
		e.entries[name] = foreign
		do(t, a, lease.Request{Action: lease.ActionRead}, 0)
		time.Sleep(59 * time.Minute)
		do(t, a, lease.Request{Action: lease.ActionRead}, 0)
		do(t, a, acquire(idB, time.Minute), lease.ErrHeldByOther)
	})
}
