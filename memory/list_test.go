package memory_test

import (
	"context"
	"slices"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// list returns the leases that a Store lists under the prefix.
func list(tb testing.TB, s lease.Lister, prefix string) (entries []lease.Entry) {
	tb.Helper()
	for e, err := range s.List(context.Background(), prefix) {
		if err != nil {
			tb.Fatal(e.Name, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// The body of a loop over a list may use the Store. If a lease changes before the list reaches it, the list
// shows the change. If the Store forgets it before that, the list leaves it out.
func TestListWhileTheStoreIsUsed(t *testing.T) {
	s := memory.New(nil)
	a := s.Authority()
	for _, name := range []string{"a", "b", "c"} {
		do(t, a, name, acquire)
	}
	var names []string
	for e, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
		switch e.Name {
		case "a":
			do(t, a, "b", release)
			do(t, a, "c", acquire)
			once(t, a, "other-", 3*memory.Idle)
		case "b":
			t.Error("b was forgotten and is listed")
		case "c":
			if e.Record.Epoch != 2 {
				t.Errorf("c has epoch %d and is listed with %d", 2, e.Record.Epoch)
			}
		}
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("listed %q", names)
	}
}
