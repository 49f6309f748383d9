package pglease_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
)

// For every duration, a renewal stores the same until that the state machine computes from the
// server's time, even if an operator has rounded the end of the lease.
func TestRenewalIsExact(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	var renewals atomic.Int64
	s := store(t, p, nil)
	a := s.Renewing(func(s lease.Store) lease.Store { return enginetest.Exact{Store: s, T: t, N: &renewals} })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	durations := []time.Duration{time.Hour + time.Microsecond, lease.Infinite - 807, 1 << 53 * time.Microsecond, 1<<53*time.Microsecond + time.Microsecond,
		time.Minute + 1, time.Minute + 1, lease.Infinite - 1, lease.Infinite}
	for range 100 {
		d := time.Minute + time.Duration(r.Int64N(int64(1)<<(36+r.IntN(27))))
		durations = append(durations, d.Truncate([]time.Duration{1, time.Microsecond, time.Second}[r.IntN(3)]))
	}
	for i, d := range durations {
		name, last := fmt.Sprint("x", i), lease.Result{}
		do(t, a, name, acquire(idA, d), 0)
		if _, err := p.Exec(t.Context(), "update lease set nanos = nanos / $2 where name = $1", name, 1+i%2*999); err != nil {
			t.Fatal(err)
		}
		do(t, a, name, lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, 0)
		for range 3 {
			sent := time.Now().Truncate(time.Microsecond)
			res := do(t, a, name, renew(idB), 0)
			if res.Now.Before(last.Now) || res.Now.Before(sent) || res.Now.After(time.Now()) {
				t.Errorf("a renewal between %v and %v says that it is %v, and the one before %v", sent, time.Now(), res.Now, last.Now)
			}
			if res.MinRemaining > d || d != lease.Infinite && (res.MinRemaining < d-time.Second || res.Record.Until.Sub(res.Now) > d) {
				t.Errorf("%v: renewed for %v, and for %v surely", d, res.Record.Until.Sub(res.Now), res.MinRemaining)
			}
			if snap, err := s.Load(t.Context(), name); err != nil || snap.Record != res.Record {
				t.Errorf("%v: the row has %v, %v, and the answer was %v", d, snap.Record, err, res.Record)
			}
			last = res
		}
	}
	if n := renewals.Load(); n < 100 {
		t.Errorf("%d renewals in one exchange prove nothing", n)
	}
}
