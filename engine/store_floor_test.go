package engine_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// SPEC S3: every grant has an Epoch above the Floor, and tokens keep rising if a record is deleted.
func TestFloor(t *testing.T) {
	on := func(a lease.Authority, name string, req lease.Request) lease.Result {
		t.Helper()
		res, err := a.Do(t.Context(), name, req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	e := newFake()
	old := newStore(t, e, engine.Options{}).Authority()
	on(old, "held", acquire(idA, time.Hour))
	released := on(old, "released", acquire(idA, time.Hour))
	on(old, "released", release(idA))

	const floor = 1000
	a := newStore(t, e, engine.Options{Floor: lease.TokenOf(floor)}).Authority()
	if res := on(a, "held", renew(idA)); res.Record.Epoch > released.Record.Epoch {
		t.Errorf("a renewal of a lease with a record: epoch %d", res.Record.Epoch)
	}
	on(a, "held", breaks(0))
	for _, name := range []string{"new", "released", "held"} {
		last := uint64(floor)
		for i := range 5 {
			res := on(a, name, acquire(idB, time.Hour))
			if res.Record.Epoch <= last {
				t.Errorf("%s: epoch %d of grant %d, want above %d", name, res.Record.Epoch, i, last)
			}
			last = res.Record.Epoch
			on(a, name, release(idB))
			if i == 3 {
				delete(e.entries, name) // by hand
				e.revision++
			}
		}
	}
}
