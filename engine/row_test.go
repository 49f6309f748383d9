package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// A record survives its columns, to the nanosecond.
func TestRow(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_001, time.UTC)
	ends := lease.Record{State: lease.Leased, ID: shorthand.IDA, Owner: "me", Duration: time.Minute + 1, Until: at, Epoch: 7}
	infinite := lease.Record{State: lease.Leased, ID: shorthand.IDA, Duration: lease.Infinite, Epoch: math.MaxInt64}
	for _, want := range []lease.Record{ends, infinite, {Epoch: 9}, {State: lease.Broken, ID: shorthand.IDA, Duration: 1, Epoch: 1}} {
		row := engine.NewRow(want)
		row.Version, row.Changed, row.Now = 5, at.UnixMicro()-3, at.UnixMicro()-2
		snap, err := row.Snapshot("x", new(engine.LateClock))
		if err != nil || snap.Record != want || snap.Now.UnixMicro() != row.Now {
			t.Errorf("%+v, %v, want %v", snap, err, want)
		}
		if version, absent, err := engine.ParseVersion(snap.Version); version != 5 || absent || err != nil {
			t.Errorf("%q: %d, %v, %v", snap.Version, version, absent, err)
		}
	}
	row := engine.NewRow(ends)
	if rounded := at.UnixMicro() + 1; *row.Until != rounded || row.Nanos != 999 {
		t.Errorf("the end is %d and %d, want %d and 999", *row.Until, row.Nanos, rounded)
	}
	row.Now, row.Changed = 3, 8 // the clock was set back
	if snap, err := row.Snapshot("x", new(engine.LateClock)); err != nil || snap.Now.UnixMicro() != 8 {
		t.Errorf("the time is %v, %v", snap.Now, err)
	}
	for what, corrupt := range map[string]func(*engine.Row){
		"state": func(r *engine.Row) { r.State = "held" }, "ID": func(r *engine.Row) { r.ID = "7" }, "no ID": func(r *engine.Row) { r.ID = "" },
		"end": func(r *engine.Row) { r.Until = nil }, "duration": func(r *engine.Row) { r.Duration = -2 },
	} {
		bad := engine.NewRow(ends)
		corrupt(&bad)
		if _, err := bad.Snapshot("x", new(engine.LateClock)); lease.CodeOf(err) != lease.ErrCorrupt {
			t.Errorf("a bad %s: %v", what, err)
		}
	}
	snap, err := engine.Row{Epoch: 4, Version: 5}.Snapshot("x", new(engine.LateClock))
	if version, absent, malformed := engine.ParseVersion(snap.Version); err != nil || snap.Record != (lease.Record{Epoch: 4}) || version != 5 || !absent || malformed != nil {
		t.Errorf("without a row: %+v, %v", snap, err)
	}
	if _, _, err := engine.ParseVersion("other"); err == nil {
		t.Error("the version of another store was accepted")
	}
}

// A Swap must not happen after the end of the lease, unless the lease had already ended.
func TestSwapTimes(t *testing.T) {
	at := time.UnixMicro(10).Add(500)
	r := lease.Record{State: lease.Leased, Until: at}
	for _, c := range []struct {
		old           lease.Snapshot
		earliest, end int64
	}{
		{lease.Snapshot{}, 0, math.MaxInt64},
		{lease.Snapshot{Record: r, Now: at.Add(-1)}, 0, 11},
		{lease.Snapshot{Record: r, Now: at}, 11, math.MaxInt64},
	} {
		if earliest, end := engine.SwapTimes(c.old); earliest != c.earliest || end != c.end {
			t.Errorf("%v at %v: %d to %d, want %d to %d", c.old.Record, c.old.Now, earliest, end, c.earliest, c.end)
		}
	}
}
