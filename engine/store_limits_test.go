package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/session"
)

// The break of an infinite lease may last longer than MaxDuration. No other Store grants the lease while
// the holder still believes that it holds it. SPEC A7.
func TestBreakOfAnInfiniteLeaseOutlastsMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 10 * time.Minute
		e, o := newFake(), engine.Options{Limits: lease.Limits{MaxDuration: time.Minute}}
		a, b := newStore(t, e, o).Authority(), newStore(t, e, o).Authority()
		s := hold(t, a, session.Options{Duration: lease.Infinite})
		do(t, a, breaks(grace), 0)
		for passed := time.Duration(0); passed < grace; passed += 10 * time.Second {
			do(t, b, acquire(idB, time.Minute), lease.ErrHeldByOther)
			time.Sleep(10 * time.Second)
		}
		if s.CheckAlive() {
			t.Error("alive after the end of the break")
		}
		do(t, b, acquire(idB, time.Minute), 0)
	})
}

// A Store shortens a record as Decide does, and counts the shortened time from its first read. SPEC A7.
func TestClaimsAreBoundedAsDecideBoundsThem(t *testing.T) {
	const claimed, short, long = 10 * time.Minute, time.Minute, time.Hour
	for what, c := range map[string]struct {
		limits   lease.Limits
		state    lease.State
		duration time.Duration
		want     time.Duration
	}{
		"a lease, MaxDuration":                      {lease.Limits{MaxDuration: short}, lease.Leased, claimed, short},
		"a lease, MaxPeriod":                        {lease.Limits{MaxPeriod: short}, lease.Leased, claimed, claimed},
		"a break, MaxDuration":                      {lease.Limits{MaxDuration: short}, lease.Breaking, claimed, short},
		"a break, a longer MaxPeriod":               {lease.Limits{MaxDuration: short, MaxPeriod: long}, lease.Breaking, claimed, short},
		"a break, a shorter MaxPeriod":              {lease.Limits{MaxDuration: long, MaxPeriod: short}, lease.Breaking, claimed, claimed},
		"an infinite lease's break, MaxDuration":    {lease.Limits{MaxDuration: short}, lease.Breaking, lease.Infinite, claimed},
		"an infinite lease's break, MaxPeriod":      {lease.Limits{MaxPeriod: short}, lease.Breaking, lease.Infinite, short},
		"an infinite lease's break, both":           {lease.Limits{MaxDuration: long, MaxPeriod: short}, lease.Breaking, lease.Infinite, short},
		"an infinite lease's break, within a limit": {lease.Limits{MaxPeriod: long}, lease.Breaking, lease.Infinite, claimed},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				record := lease.Record{State: c.state, ID: idA, Duration: c.duration, Epoch: 7}
				e.put(name, engine.Retained{Record: record, Left: claimed})
				record.Until = time.Now().UTC().Add(claimed)
				decided, _, _ := lease.Decide(record, lease.Request{Action: lease.ActionRead}, c.limits, time.Now())
				if left := decided.Remaining(time.Now()); left != c.want {
					t.Fatalf("Decide leaves %v, want %v", left, c.want)
				}

				s := newStore(t, e, engine.Options{Limits: c.limits})
				do(t, s.Authority(), lease.Request{Action: lease.ActionRead}, 0)
				time.Sleep(30 * time.Second)
				for _, a := range []lease.Authority{s.Authority(), lease.NewAuthority(s)} {
					res := do(t, a, lease.Request{Action: lease.ActionRead}, 0)
					if left := res.MaxRemaining() + 30*time.Second; left != c.want {
						t.Errorf("%T: %v left at the first read, want %v", a, left, c.want)
					}
					if res.Record.Duration != decided.Duration {
						t.Errorf("%T: a duration of %v, want %v", a, res.Record.Duration, decided.Duration)
					}
				}
			})
		})
	}
}

// A Store rounds the time left up when it writes a record, but does not count more time than the other
// Stores, which shorten it to MaxDuration.
func TestOwnSwapIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = time.Second + 1
		e, o := newFake(), engine.Options{Limits: lease.Limits{MaxDuration: most}, MaxClockDrift: 1e-12}
		granted := do(t, newStore(t, e, o).Authority(), acquire(idA, most), 0)
		seen := do(t, newStore(t, e, o).Authority(), acquire(idB, most), lease.ErrHeldByOther)
		if seen.MaxRemaining() < granted.MinRemaining {
			t.Errorf("the holder believes for %v, but another Store waits only for %v", granted.MinRemaining, seen.MaxRemaining())
		}
	})
}

// foreignLease has a foreign program hold the lease for one hour.
func foreignLease(t *testing.T, e *fake) engine.Entry {
	t.Helper()
	do(t, newStore(t, e, engine.Options{}).Authority(), acquire(idA, time.Hour), 0)
	foreign := e.entries[name]
	foreign.Foreign = true
	e.entries[name] = foreign
	return foreign
}

// The Limits apply to the records of programs that use this library, but not to foreign leases.
func TestForeignEntriesAreNotBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		a := newStore(t, e, engine.Options{Limits: lease.Limits{MaxDuration: time.Minute}}).Authority()
		foreign := foreignLease(t, e)
		read := do(t, a, lease.Request{Action: lease.ActionRead}, 0)
		time.Sleep(time.Minute)
		refused := do(t, a, acquire(idB, time.Minute), lease.ErrHeldByOther)
		if read.MaxRemaining() != time.Hour || refused.MaxRemaining() != 59*time.Minute {
			t.Errorf("%v left of an hour, and %v a minute later", read.MaxRemaining(), refused.MaxRemaining())
		}
		if e.entries[name] != foreign {
			t.Errorf("the refused acquire has written %+v", e.entries[name])
		}
	})
}

// If a Store remembers a foreign lease that was released in the meantime, it does not refuse an acquire
// because of that. SPEC A4.
func TestReleasedForeignLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		a := newStore(t, e, engine.Options{Limits: lease.Limits{MaxDuration: time.Minute}}).Authority()
		foreign := foreignLease(t, e)
		do(t, a, lease.Request{Action: lease.ActionRead}, 0)
		e.put(name, engine.Retained{Record: lease.Record{Epoch: foreign.Record.Epoch}})
		do(t, a, acquire(idB, time.Minute), 0)
	})
}

// An Authority refuses a bad name, and a request outside the limits, without a request to the engine.
// SPEC A7.
func TestAuthorityChecksArguments(t *testing.T) {
	e := newFake()
	a := newStore(t, e, engine.Options{Limits: vectors.AzureLimits}).Authority()
	for _, c := range []struct {
		name string
		req  lease.Request
		want lease.Code
	}{
		{"", acquire(idA, time.Minute), lease.ErrName},
		{"", acquire(idA, time.Hour), lease.ErrName},
		{name, acquire(idA, time.Hour), lease.ErrDuration},
		{name, breaks(time.Hour), lease.ErrPeriod},
	} {
		_, err := a.Do(t.Context(), c.name, c.req)
		var op *lease.OpError
		if !errors.As(err, &op) || lease.CodeOf(err) != c.want || op.Op != c.req.Action.String() || op.Name != c.name {
			t.Errorf("%q, %v: %v, want %v", c.name, c.req.Action, err, c.want)
		}
	}
	if e.exchanges != 0 {
		t.Errorf("%d exchanges", e.exchanges)
	}
}
