package leasefault_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A wrapper that changes loaded records changes listed records in the same way.
func TestListIsWhatLoadShows(t *testing.T) {
	for name, wrap := range map[string]func(lease.Store) (lease.Store, func()){
		"Skew": func(s lease.Store) (lease.Store, func()) {
			clock := leasefault.NewClock()
			return leasefault.Skew(s, clock), func() { clock.Step(time.Minute) }
		},
		"LoseMemory": func(s lease.Store) (lease.Store, func()) { return leasefault.Restartable(s, leasefault.LoseMemory) },
		"ResetTerm":  func(s lease.Store) (lease.Store, func()) { return leasefault.Restartable(s, leasefault.ResetTerm) },
		"Tamper": func(s lease.Store) (lease.Store, func()) {
			owner := "as written"
			return leasefault.Tamper(s, func(_ string, r *lease.Record) { r.Owner = owner }), func() { owner = "as changed" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, change := wrap(memory.New(nil))
				for _, name := range []string{"a", "b"} {
					req := lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Duration: time.Minute}
					if _, err := lease.NewAuthority(s).Do(t.Context(), name, req); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Second)
				before := listed(t, s)
				change()
				after := listed(t, s)
				if len(before) != 2 || len(after) != 2 || before["a"] == after["a"] {
					t.Errorf("listed %+v, and after the change %+v", before, after)
				}
			})
		})
	}
}

// listed returns the records of s.List, which must be equal to those of s.Load.
func listed(t *testing.T, s lease.Store) map[string]lease.Record {
	t.Helper()
	records := map[string]lease.Record{}
	for e, err := range s.(lease.Lister).List(t.Context(), "") {
		if err != nil {
			t.Fatal(e.Name, err)
		}
		snap, err := s.Load(context.Background(), e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Record != snap.Record.At(snap.Now) || !e.Now.Equal(snap.Now) {
			t.Errorf("%s is listed as %+v at %v, and loaded as %+v at %v", e.Name, e.Record, e.Now, snap.Record, snap.Now)
		}
		records[e.Name] = e.Record
	}
	return records
}
