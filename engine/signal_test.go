package engine_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// SPEC S7: the changes that end or shorten a wait need a signal. A grant of a lease that was not locked,
// and a later end, do not.
func TestNeedsSignal(t *testing.T) {
	now := time.Unix(1_000_000_000, 0).UTC()
	leased := lease.Record{ID: lease.ID{1}, Owner: "a", State: lease.Leased,
		Duration: time.Minute, Until: now.Add(time.Minute), Epoch: 1}
	with := func(r lease.Record, change func(*lease.Record)) lease.Record { change(&r); return r }
	infinite := with(leased, func(r *lease.Record) { r.Duration, r.Until = lease.Infinite, time.Time{} })
	breaking := with(leased, func(r *lease.Record) { r.State = lease.Breaking })
	available := lease.Record{ID: leased.ID, Epoch: 1}
	expired := with(leased, func(r *lease.Record) { r.State = lease.Expired })
	broken := with(leased, func(r *lease.Record) { r.State = lease.Broken })
	later := func(r *lease.Record) { r.Until = r.Until.Add(time.Second) }
	earlier := func(r *lease.Record) { r.Until = r.Until.Add(-time.Second) }
	for _, c := range []struct {
		name      string
		old, next lease.Record
		required  bool
	}{
		{"grant", available, leased, false},
		{"grant after the end", expired, leased, false},
		{"grant after a break", broken, leased, false},
		{"renewal", leased, with(leased, later), false},
		{"no change", leased, leased, false},
		{"infinite", leased, infinite, false},
		{"infinite again", infinite, infinite, false},
		{"release", leased, available, true},
		{"break at once", leased, broken, true},
		{"break", leased, breaking, true},
		{"break with the same end", infinite, with(breaking, func(r *lease.Record) { r.Duration, r.Until = lease.Infinite, now }), true},
		{"end of a break", breaking, broken, true},
		{"shorter", leased, with(leased, earlier), true},
		{"shorter break", breaking, with(breaking, earlier), true},
		{"finite", infinite, leased, true},
		{"another ID", leased, with(leased, func(r *lease.Record) { r.ID[0] ^= 1 }), true},
		{"another owner", leased, with(leased, func(r *lease.Record) { r.Owner = "b" }), true},
	} {
		if got := engine.NeedsSignal(c.old, c.next); got != c.required {
			t.Errorf("%s: %v, want %v", c.name, got, c.required)
		}
	}
}
