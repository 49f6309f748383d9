package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// listed returns the entries that a Store lists, by name.
func listed(t *testing.T, s *engine.Store) map[string]lease.Entry {
	t.Helper()
	entries := map[string]lease.Entry{}
	for e, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(e.Name, err)
		}
		entries[e.Name] = e
	}
	return entries
}

// A new Store starts its countdowns at the first list, so a later list shows which leases have expired
// because their holders are dead. SPEC S10.
func TestListCountsFromFirstObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, operator := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{})
		for _, name := range []string{"alive", "dead"} {
			if _, err := holder.Do(t.Context(), name, acquire(idA, 10*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // the Store of the operator has not seen this hour
		for name, entry := range listed(t, operator) {
			if left := entry.Record.Remaining(entry.Now); left != 10*time.Second {
				t.Errorf("first list: %s has %v left", name, left)
			}
		}
		time.Sleep(5 * time.Second)
		if _, err := holder.Do(t.Context(), "alive", renew(idA)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		entries := listed(t, operator)
		if state := entries["alive"].Record.State; state != lease.Leased {
			t.Errorf("the lease that was renewed is %v", state)
		}
		if state := entries["dead"].Record.State; state != lease.Expired {
			t.Errorf("the lease that was not renewed is %v", state)
		}
	})
}

// A list shows all names, but does not make the Store forget one that is in use, and starts no countdown
// for names beyond Options.Names.
func TestListForgetsNoObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		holder, waits := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{Names: 1})
		for _, name := range []string{"a", "b", "c"} {
			if _, err := holder.Do(t.Context(), name, acquire(idA, 10*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := waits.Authority().Do(t.Context(), "b", acquire(idB, time.Second)); !errors.Is(err, lease.ErrHeldByOther) {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if entries := listed(t, waits); len(entries) != 3 {
			t.Errorf("lists %+v", entries)
		}
		time.Sleep(4 * time.Second)
		entries := listed(t, waits)
		for name, state := range map[string]lease.State{"a": lease.Leased, "b": lease.Expired, "c": lease.Leased} {
			if got := entries[name].Record.State; got != state {
				t.Errorf("%s is %v, want %v", name, got, state)
			}
		}
		if _, err := waits.Authority().Do(t.Context(), "b", acquire(idB, time.Second)); err != nil {
			t.Errorf("10 s after the first observation: %v", err)
		}
	})
}
