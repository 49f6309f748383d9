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

// The holders of more names than a Store remembers are dead. Contenders that wait for these names still
// acquire their leases.
func TestWhatIsWaitedForIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, waits := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{Names: 1}).Authority()
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			if _, err := holder.Do(t.Context(), name, acquire(idA, 10*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		acquired := make(chan error, len(names))
		for i, name := range names {
			l, err := session.New(waits, name, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(context.Background())
			go func() {
				time.Sleep(time.Duration(i) * time.Second) // the contenders read their records at different times
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := session.AcquireWait(ctx, l, nil)
				acquired <- err
			}()
		}
		for range names {
			if err := <-acquired; err != nil {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("replaced after %v, and the leases were of 10 s", took)
		}
	})
}

// After the last watch of a name has ended, the Store can forget the name.
func TestWatchesArePinsUntilTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, s := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{Names: 1})
		for _, name := range []string{"a", "b"} {
			if _, err := holder.Do(t.Context(), name, acquire(idA, time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{first, second} {
			if _, err := s.Watch(ctx, "a"); err != nil {
				t.Fatal(err)
			}
		}
		until := func(name string) time.Time {
			snap, err := s.Load(t.Context(), name)
			if err != nil || snap.Record.State != lease.Leased {
				t.Fatal(snap.Record, err)
			}
			return snap.Record.Until
		}
		seen := until("a")
		for i, step := range []struct {
			end       func()
			forgotten bool
		}{{func() {}, false}, {endFirst, false}, {endSecond, true}} {
			step.end()
			time.Sleep(time.Second)
			until("b") // the name takes the place of another name if the Store is full
			if forgotten := until("a") != seen; forgotten != step.forgotten {
				t.Errorf("step %d: forgotten %v", i, forgotten)
			}
		}
	})
}
