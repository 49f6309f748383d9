package lease_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A listingStore lists the entries in its fields, each with its error if there is one.
type listingStore struct {
	lease.Store
	limits  lease.Limits
	entries []lease.Entry
	errs    []error
}

func (s *listingStore) Limits() lease.Limits { return s.limits }

func (s *listingStore) List(_ context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for i, e := range s.entries {
			if !yield(e, s.errs[i]) {
				return
			}
		}
	}
}

// SPEC S10: an authority lists the leases of its store as they are at that time, shortened to the limits.
func TestAuthorityLists(t *testing.T) {
	leased := lease.Record{State: lease.Leased, ID: ids["A"], Duration: time.Hour, Until: noon.Add(time.Hour), Epoch: 1}
	spoilt := errors.New("spoilt")
	s := &listingStore{
		limits: lease.Limits{MaxDuration: time.Minute},
		entries: []lease.Entry{
			{Name: "claims too much", Record: leased, Now: noon},
			{Name: "is over", Record: leased, Now: leased.Until},
			{Name: "spoilt"},
			{Name: "beyond the loop"},
		},
		errs: []error{nil, nil, spoilt, nil},
	}
	want := []lease.Entry{
		{Name: "claims too much", Record: leased, Now: noon},
		{Name: "is over", Record: leased, Now: leased.Until},
		{Name: "spoilt"},
	}
	want[0].Record.Duration, want[0].Record.Until = time.Minute, noon.Add(time.Minute)
	want[1].Record.Duration, want[1].Record.Until, want[1].Record.State = time.Minute, time.Time{}, lease.Expired
	i := 0
	for e, err := range lease.NewAuthority(s).(lease.Lister).List(t.Context(), "") {
		if e != want[i] || err != s.errs[i] {
			t.Errorf("got  %+v, %v\nwant %+v, %v", e, err, want[i], s.errs[i])
		}
		if i++; i == len(want) {
			break
		}
	}
	if i != len(want) {
		t.Errorf("%d entries", i)
	}
}

// An authority is a Lister only if its store is one, and a Watcher only if its store is one.
func TestAbilitiesArePassedOn(t *testing.T) {
	plain := newStore(leasedA)
	watches, lists := watchedStore{plain}, &listingStore{}
	for what, s := range map[string]lease.Store{
		"none":    plain,
		"watches": watches,
		"lists":   lists,
		"both": struct {
			lease.Store
			lease.Watcher
			lease.Lister
		}{plain, watches, lists},
	} {
		a := lease.NewAuthority(s)
		w, isWatcher := a.(lease.Watcher)
		_, isLister := a.(lease.Lister)
		if isWatcher != (what == "watches" || what == "both") || isLister != (what == "lists" || what == "both") {
			t.Errorf("%s: Watcher %v, Lister %v", what, isWatcher, isLister)
		}
		if isWatcher {
			if _, err := w.Watch(t.Context(), "a"); err == nil || err.Error() != "watching a" {
				t.Errorf("%s: %v", what, err)
			}
		}
		if what != "lists" {
			do(t, plain, a, acquireB, "load", lease.ErrHeldByOther)
		}
	}
}
