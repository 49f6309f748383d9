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

// After an engine was restored from a backup, with older revisions, its Store still works, and starts a new
// countdown for each restored lease.
func TestRestoredEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		s := newStore(t, e, engine.Options{})
		a := s.Authority()
		do(t, a, acquire(idA, 10*time.Second), 0)
		e.mu.Lock()
		backup, revision := e.entries[name], e.revision
		e.mu.Unlock()
		for range 5 {
			do(t, a, renew(idA), 0)
		}
		do(t, a, release(idA), 0)
		e.mu.Lock()
		e.entries[name], e.revision = backup, revision
		e.mu.Unlock()
		time.Sleep(time.Second)
		e.before = func() { time.Sleep(time.Millisecond) }
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		before := e.exchanges
		res, err := a.Do(ctx, name, acquire(idB, time.Second))
		if !errors.Is(err, lease.ErrHeldByOther) || res.MaxRemaining() != 10*time.Second || res.MinRemaining != 0 || e.exchanges-before > 4 {
			t.Errorf("after %d exchanges: %v, %v", e.exchanges-before, res, err)
		}
		time.Sleep(11 * time.Second)
		if !t.Failed() {
			do(t, a, acquire(idB, time.Second), 0)
		}
	})
}

// A restored engine may write as often as it did before, so that another entry has the revision that the Store remembers.
func TestSameRevisionAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		a := newStore(t, e, engine.Options{}).Authority()
		do(t, a, acquire(idA, 10*time.Second), 0)
		e.mu.Lock()
		other := e.entries[name]
		other.Record.ID, other.Version = idB, "other"
		e.entries[name] = other
		e.mu.Unlock()
		e.before = func() { time.Sleep(time.Millisecond) }
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		before := e.exchanges
		res, err := a.Do(ctx, name, renew(idA))
		if !errors.Is(err, lease.ErrIDMismatch) || res.Record.ID != idB || e.exchanges-before > 4 {
			t.Errorf("after %d exchanges: %v, %v", e.exchanges-before, res, err)
		}
	})
}
