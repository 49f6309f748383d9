package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// FuzzSwap calls Swap with arbitrary records, names and snapshots. A refused Swap changes nothing.
// After a successful Swap, the stored record is the given record, is valid, and has no lower epoch
// than before.
func FuzzSwap(f *testing.F) {
	f.Add("a", true, uint8(lease.Leased), []byte{1}, "worker-1", int64(time.Hour), int64(3600), uint64(2), int64(0))
	f.Add("a", true, uint8(lease.Breaking), []byte{1}, "", int64(lease.Infinite), int64(1), uint64(1), int64(time.Hour))
	f.Add("", false, uint8(lease.Available), []byte{}, "", int64(0), int64(0), uint64(0), int64(-1))
	f.Add("a\x00", true, uint8(9), []byte{1}, "\xff", int64(-1), int64(-1), uint64(1)<<63, int64(60))
	f.Fuzz(func(t *testing.T, name string, current bool, state uint8, id []byte, owner string, duration, until int64, epoch uint64, later int64) {
		clock := &hand{now: time.Unix(0, 0)}
		s, ctx := memory.New(&memory.Options{Clock: clock}), context.Background()
		before, err := s.Load(ctx, name)
		if named := lease.CheckName(name) == nil; named != (err == nil) {
			t.Fatalf("Load of %q: %v", name, err)
		}
		if err == nil {
			before = swap(t, s, name, before, leased(before, time.Minute))
		}
		old := before
		if !current {
			old = lease.Snapshot{Version: name, Now: before.Now}
		}
		next := lease.Record{State: lease.State(state), Owner: owner, Duration: time.Duration(duration), Epoch: epoch}
		copy(next.ID[:], id)
		if until != 0 {
			next.Until = time.Unix(until, 0).UTC()
		}
		clock.add(time.Duration(later))
		got, err := s.Swap(ctx, name, old, next)
		after, loadErr := s.Load(ctx, name)
		if err != nil {
			if after.Record != before.Record || after.Version != before.Version {
				t.Fatalf("%v changed %+v to %+v", err, before, after)
			}
			return
		}
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		ended := time.Duration(later) >= time.Minute
		if !current || ended || next.Validate() != nil || next.Epoch < before.Record.Epoch {
			t.Fatalf("swapped %+v for %+v", next, before)
		}
		if got != after || got.Record != next || got.Version == before.Version || got.Now.Before(before.Now) {
			t.Fatalf("swapped %+v, got %+v and loaded %+v", next, got, after)
		}
	})
}
