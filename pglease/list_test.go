package pglease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A list is complete even if it has more rows than one exchange reads. Each invalid row yields an error.
func TestList(t *testing.T) {
	var m meter
	_, p := database(t, `
		insert into lease (name, state, owner, until, duration, epoch, id)
		select 'job/' || n, 'leased', 'worker-1', now() + interval '1 h', '1h0m0s', 7, '`+idA.String()+`' from generate_series(1, 1234) n;
		insert into lease (name, state, epoch) values ('job/777/corrupt', 'leased', 8), ('jo', 'available', 1), ('jpb', 'available', 1)`, m.trace)
	seen, corrupt, last := 0, 0, ""
	if n := m.count(func() {
		for e, err := range store(t, p, nil).List(t.Context(), "job/") {
			if e.Name <= last || !strings.HasPrefix(e.Name, "job/") {
				t.Errorf("%q after %q", e.Name, last)
			}
			if last = e.Name; err != nil {
				corrupt++
				says(t, err, "job/777/corrupt", "correct it, or delete it")
			} else if seen++; e.Record.State != lease.Leased || e.Record.Owner != "worker-1" || e.Record.Epoch != 7 || e.Record.Remaining(e.Now) < 50*time.Minute {
				t.Errorf("%+v", e)
			}
		}
	}); n != 3 || seen != 1234 || corrupt != 1 {
		t.Errorf("%d entries and %d errors in %d exchanges", seen, corrupt, n)
	}
}
