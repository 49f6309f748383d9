package linearize

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A negative Epsilon is refused.
func TestRecorderOptions(t *testing.T) {
	const want = "Options.Epsilon = -1ns: must not be negative"
	if rec, err := NewRecorder(&Options{Observed: true, Epsilon: -1}); rec != nil || err == nil || err.Error() != want || !errors.Is(err, lease.ErrOption) {
		t.Errorf("%v, %v, want %s", rec, err, want)
	}
	for _, o := range []*Options{nil, {}, {Observed: true}, {Observed: true, Epsilon: time.Second}} {
		if _, err := NewRecorder(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A plain authority can neither watch nor list.
type plain struct{ lease.Authority }

// The authority of a Recorder watches and lists exactly if the authority that it wraps does, and records
// only requests.
func TestRecorderPassesAbilitiesOn(t *testing.T) {
	id := lease.MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
	rec, inner := record(t, nil), memory.New(nil).Authority()
	a := rec.Authority(0, inner)
	if _, err := a.Do(t.Context(), "name", lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Minute}); err != nil {
		t.Fatal(err)
	}
	lister, lists := a.(lease.Lister)
	watcher, watches := a.(lease.Watcher)
	if !lists || !watches {
		t.Fatalf("lists: %v, watches: %v, want both", lists, watches)
	}
	n := 0
	for e, err := range lister.List(t.Context(), "") {
		if n++; err != nil || e.Name != "name" {
			t.Errorf("%v, %v, want name", e, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := watcher.Watch(ctx, "name"); err != nil || n != 1 || rec.Len() != 1 {
		t.Errorf("%v, %d leases and %d requests, want 1 of each", err, n, rec.Len())
	}
	without := rec.Authority(1, plain{inner})
	_, lists = without.(lease.Lister)
	_, watches = without.(lease.Watcher)
	if lists || watches {
		t.Errorf("lists: %v, watches: %v, want neither", lists, watches)
	}
}
