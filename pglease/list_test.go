package pglease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// A list is complete even if it has more rows than one exchange reads. Each invalid row yields an error.
func TestList(t *testing.T) {
	var m meter
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)), m.trace)
	const rows = 1234
	if _, err := p.Exec(t.Context(), `insert into lease (name, state, owner, until, duration, epoch, id)
		select 'job/' || n, 'leased', 'worker-1', now() + interval '1 h', '1h0m0s', 7, $1::uuid from generate_series(1, $2) n`, idA.String(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Exec(t.Context(), `insert into lease (name, state, epoch) values ('job/777/corrupt', 'leased', 8), ('jo', 'available', 1), ('jpb', 'available', 1)`); err != nil {
		t.Fatal(err)
	}
	lister := store(t, p, nil).Authority().(lease.Lister)
	seen, corrupt, last := 0, 0, ""
	if n := m.count(func() {
		for e, err := range lister.List(t.Context(), "job/") {
			if e.Name <= last || !strings.HasPrefix(e.Name, "job/") {
				t.Errorf("%q after %q", e.Name, last)
			}
			last = e.Name
			switch {
			case err != nil:
				corrupt++
				says(t, err, "job/777/corrupt", "correct it, or delete it")
			case e.Record.State != lease.Leased || e.Record.Owner != "worker-1" || e.Record.Epoch != 7 || e.Record.Remaining(e.Now) < 50*time.Minute:
				t.Errorf("%+v", e)
			default:
				seen++
			}
		}
	}); n != 3 {
		t.Errorf("%d exchanges, want 3", n)
	}
	if seen != rows || corrupt != 1 {
		t.Errorf("%d entries and %d errors", seen, corrupt)
	}
}
