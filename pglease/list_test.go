package pglease_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// A list is complete even if it has more rows than one exchange reads. For each row that is not
// valid, the list yields an error.
func TestList(t *testing.T) {
	var m meter
	p := pool(t, shared.URL(shared.Database(t)), m.trace)
	const rows = 1234
	if _, err := p.Exec(t.Context(), `insert into lease (name, state, owner, until, duration, epoch, id)
		select 'job/' || n, 'leased', 'worker-1', now() + interval '1 h', '1h0m0s', 7, $1::uuid from generate_series(1, $2) n`, idA.String(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Exec(t.Context(), `insert into lease (name, state, epoch) values ('job/777/corrupt', 'leased', 8), ('jo', 'available', 1), ('jpb', 'available', 1)`); err != nil {
		t.Fatal(err)
	}
	s := store(t, p, nil)
	for what, lister := range map[string]lease.Lister{"store": s, "authority": s.Authority().(lease.Lister)} {
		seen, corrupt, last := 0, 0, ""
		if n := m.count(func() {
			for e, err := range lister.List(t.Context(), "job/") {
				if e.Name <= last || !strings.HasPrefix(e.Name, "job/") {
					t.Errorf("%s: %q after %q", what, e.Name, last)
				}
				last = e.Name
				switch {
				case err != nil:
					corrupt++
					says(t, err, "job/777/corrupt", "correct it, or delete it")
					if lease.CodeOf(err) != lease.ErrCorrupt {
						t.Errorf("%s: the code of %v", what, err)
					}
				case e.Record.State != lease.Leased || e.Record.Owner != "worker-1" || e.Record.Epoch != 7 || e.Record.Remaining(e.Now) < 50*time.Minute:
					t.Errorf("%s: %+v", what, e)
				default:
					seen++
				}
			}
		}); n != 3 {
			t.Errorf("%s: %d exchanges, want 3", what, n)
		}
		if seen != rows || corrupt != 1 {
			t.Errorf("%s: %d entries and %d errors", what, seen, corrupt)
		}
	}
	for range s.List(t.Context(), "job/") {
		break // the loop over a list may end early
	}
	for _, err := range store(t, pool(t, shared.URL("postgres")), nil).List(t.Context(), "") {
		says(t, err, "list from", "call pglease.Migrate")
	}
}

// List and Load return the same record, at the time of the server.
func TestListShowsWhatALoadShows(t *testing.T) {
	s := store(t, pool(t, shared.URL(shared.Database(t))), &pglease.Options{Limits: lease.Limits{MaxDuration: time.Hour}})
	for i, d := range []time.Duration{time.Minute, time.Minute + 1, time.Millisecond, time.Hour} {
		do(t, s.Authority(), fmt.Sprint("x", i), acquire(idA, d), 0)
	}
	for e, err := range s.List(t.Context(), "") {
		snap, failed := s.Load(t.Context(), e.Name)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if got, want := e.Record.At(snap.Now), snap.Record.At(snap.Now); got != want || e.Now.After(snap.Now) {
			t.Errorf("%s: listed %v at %v, loaded %v at %v", e.Name, e.Record, e.Now, want, snap.Now)
		}
	}
}
