package pglease_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/pglease"
)

// For every duration, a renewal stores the same until that the state machine computes from the
// server's time, even if an operator has rounded the end of the lease.
func TestRenewalIsExact(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)))
	var renewals atomic.Int64
	s := store(t, p, nil)
	a := s.Renewing(func(s lease.Store) lease.Store { return shorthand.Exact{Store: s, T: t, N: &renewals} })
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

// A renewal whose answer was lost is repeated in one exchange: it does not matter that the row has another
// version and another end. A row that differs in anything else is not renewed.
func TestRenewalAfterALostAnswer(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)))
	s := store(t, p, nil)
	a, other, ctx := s.Authority(), store(t, p, nil).Authority(), t.Context()
	var renewals lease.Store
	s.Renewing(func(r lease.Store) lease.Store { renewals = r; return r })
	for _, c := range []struct {
		what   string
		change string // of the row, by hand
		req    lease.Request
		want   error
	}{
		{what: "renewed", req: renew(idA)},
		{what: "handed over", req: lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, want: lease.ErrConflict},
		{what: "breaking", req: lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Second)}, want: lease.ErrConflict},
		{what: "released", req: release(idA), want: lease.ErrConflict},
		{what: "acquired again", req: acquire(idA, time.Hour), want: lease.ErrConflict},
		{what: "another owner", change: "owner = 'another'", want: lease.ErrConflict},
		{what: "another ID", change: "id = gen_random_uuid()", want: lease.ErrConflict},
		{what: "another duration", change: "duration = '2h0m0s'", want: lease.ErrConflict},
		{what: "another token", change: "epoch = epoch + 1", want: lease.ErrConflict},
		{what: "less than a microsecond", change: "nanos = 1", want: lease.ErrConflict},
		{what: "over", change: "until = clock_timestamp()", want: lease.ErrConflict},
	} {
		do(t, a, c.what, acquire(idA, time.Hour), 0)
		old, err := s.Load(ctx, c.what)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != "" {
			_, err = p.Exec(ctx, "update lease set "+c.change+" where name = $1", c.what)
		} else {
			_, err = other.Do(ctx, c.what, c.req)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		next, refusal := lease.Step(old.Record, renew(idA), old.Now)
		if refusal != nil {
			t.Fatal(refusal)
		}
		snap, err := renewals.Swap(ctx, c.what, old, next)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if row, loadErr := s.Load(ctx, c.what); loadErr != nil || err == nil && (row.Record != snap.Record || row.Version != snap.Version) {
			t.Errorf("%s: the row has %v, %v, and the answer was %v", c.what, row, loadErr, snap)
		}
	}
}
