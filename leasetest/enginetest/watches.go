package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
)

// WaitingCostsNothing checks that a watch wakes a waiting process, so that the process need not poll. The
// number of requests must not depend on how long the process waits, nor on how often the holder renews the
// lease. The function count returns the number of requests so far.
func WaitingCostsNothing(t *testing.T, s interface {
	Store
	Lease(name string, o *session.Options) (*session.Session, error)
}, holder lease.Authority, name string, renewals, most int, count func() int) {
	t.Helper()
	shorthand.Do(t, holder, name, shorthand.Acquire(shorthand.IDA, time.Hour), 0)
	waiter, err := s.Lease(name, &session.Options{Duration: time.Minute, RenewInterval: 50 * time.Millisecond, RequestTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close(context.Background())
	woken := make(chan time.Time, 1)
	before := count()
	go func() {
		if err := waiter.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		woken <- time.Now()
	}()
	for i := range 5 {
		select {
		case <-woken:
			t.Error("woken while the lease is held")
		case <-time.After(200 * time.Millisecond): // in real time, because a server cannot run in a synctest bubble
		}
		if i < renewals {
			shorthand.Do(t, holder, name, shorthand.Renew(shorthand.IDA), 0)
		}
	}
	if n := count() - before; n > most {
		t.Errorf("waiting for a second took %d exchanges, want at most %d", n, most)
	}
	released := time.Now()
	shorthand.Do(t, holder, name, shorthand.Release(shorthand.IDA), 0)
	t.Logf("woken %v after the release was sent", (<-woken).Sub(released))
}

// DeletionIsSeen checks that a holder learns that its record was deleted. A holder that watches its record
// must learn this at once, and any other holder at its next renewal. The function remove deletes the record
// of the named lease.
func DeletionIsSeen(t *testing.T, s interface {
	Store
	lease.Watcher
}, name string, remove func() error) {
	t.Helper()
	shorthand.Do(t, s.Authority(), name, shorthand.Acquire(shorthand.IDA, time.Minute), 0)
	signals, err := s.Watch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if !shorthand.Within(signals, true) {
		t.Error("no signal of the deletion")
	}
	shorthand.Do(t, s.Authority(), name, shorthand.Renew(shorthand.IDA), lease.ErrIDMismatch)
}

// GraceWithAWatch checks that a holder keeps nearly the whole grace period when another process breaks the
// lease. The holder watches its record, and has not renewed the lease for a while.
func GraceWithAWatch(t *testing.T, holder interface {
	Store
	lease.Watcher
}, other lease.Authority, name string) {
	t.Helper()
	shorthand.Do(t, holder.Authority(), name, shorthand.Acquire(shorthand.IDA, 30*time.Second), 0)
	if _, err := holder.Watch(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second) // in real time, because a server cannot run in a synctest bubble
	const grace = 20 * time.Second
	shorthand.Do(t, other, name, shorthand.Break(grace), 0)
	snap, err := holder.Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	left := snap.Record.Until.Sub(snap.Now) - snap.Uncertainty
	if left < grace-4*time.Second || left > grace { // the mark of a store is at most 2 s old
		t.Errorf("%v of %v is left", left, grace)
	}
	t.Logf("%v of %v is left of the grace of a break 8 s after the last renewal", left.Round(time.Millisecond), grace)
}
