package shorthand

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Exchanges sends requests for a new name, and requires that each takes the wanted number of exchanges between the store
// and its server. The function count returns the number of exchanges so far, and other is an authority of another client.
func Exchanges(t testing.TB, s Store, other lease.Authority, name string, count func() int, want ...int) {
	t.Helper()
	a, loading := s.Authority(), lease.NewAuthority(s)
	for i, c := range []struct {
		what string
		by   lease.Authority
		req  lease.Request
		code lease.Code
	}{
		{"the first acquire of a name", a, Acquire(IDA, time.Minute), 0},
		{"a renewal", a, Renew(IDA), 0},
		{"a renewal that loads", loading, Renew(IDA), 0},
		{"a release", a, Release(IDA), 0},
		{"another acquire", a, Acquire(IDA, time.Minute), 0},
		{"a refusal", a, Acquire(IDB, time.Minute), lease.ErrHeldByOther},
		{"the release of another", other, Release(IDA), 0},
		{"an acquire after another's release", a, Acquire(IDB, time.Minute), 0},
	} {
		before := count()
		Do(t, c.by, name, c.req, c.code)
		if n := count() - before; n != want[i] {
			t.Errorf("%s: %d exchanges, want %d", c.what, n, want[i])
		}
	}
}
