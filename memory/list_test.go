package memory_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// SPEC S10: a list is sorted by name, and shows each record as it is at the time of the list.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		a := s.Authority()
		if entries := list(t, s, ""); len(entries) != 0 {
			t.Errorf("empty Store: %+v", entries)
		}
		for _, c := range []struct {
			name string
			d    time.Duration
			more []lease.Request
		}{
			{"leased", time.Minute, nil},
			{"infinite", lease.Infinite, nil},
			{"expired", time.Second, nil},
			{"breaking", time.Minute, []lease.Request{{Action: lease.ActionBreak, Period: lease.Grace(10 * time.Second)}}},
			{"broken", time.Minute, []lease.Request{{Action: lease.ActionBreak, Period: lease.Grace(time.Second)}}},
			{"available", time.Minute, []lease.Request{{Action: lease.ActionRelease, ID: holder}, acquire, {Action: lease.ActionRelease, ID: holder}}},
			{"written", time.Second, []lease.Request{{Action: lease.ActionRelease, ID: holder}, {Action: lease.ActionWrite}}},
		} {
			do(t, a, c.name, lease.Request{Action: lease.ActionAcquire, Proposed: holder, Owner: "of " + c.name, Duration: c.d})
			for _, req := range c.more {
				do(t, a, c.name, req)
			}
		}
		load(t, s, "asked for, and never leased")
		time.Sleep(time.Second)
		type line struct {
			name  string
			state lease.State
			owner string
			left  time.Duration
			epoch uint64
		}
		want := []line{
			{"available", lease.Available, "worker-1", 0, 2},
			{"breaking", lease.Breaking, "of breaking", 9 * time.Second, 1},
			{"broken", lease.Broken, "of broken", 0, 1},
			{"expired", lease.Expired, "of expired", 0, 1},
			{"infinite", lease.Leased, "of infinite", lease.Infinite, 1},
			{"leased", lease.Leased, "of leased", 59 * time.Second, 1},
			{"written", lease.Available, "", 0, 1},
		}
		for prefix, want := range map[string][]line{"": want, "le": want[5:6], "breaking": want[1:2], "brok": want[2:3], "b": want[1:3], "x": nil} {
			var got []line
			for _, e := range list(t, s, prefix) {
				if err := e.Record.Validate(); err != nil {
					t.Errorf("%s: %v", e.Name, err)
				}
				got = append(got, line{e.Name, e.Record.State, e.Record.Owner, e.Record.Remaining(e.Now), e.Record.Epoch})
			}
			if !slices.Equal(got, want) {
				t.Errorf("prefix %q:\ngot  %+v\nwant %+v", prefix, got, want)
			}
		}
	})
}

// The body of a loop over a list may use the Store. If a lease changes before the list reaches it,
// the list shows the change. If the Store forgets a lease before the list reaches it, the list
// leaves the lease out.
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

func TestListErrors(t *testing.T) {
	s := memory.New(nil)
	for _, name := range []string{"a", "b"} {
		do(t, s.Authority(), name, acquire)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var names []string
	var last error
	for e, err := range s.List(ctx, "") {
		names, last = append(names, e.Name), err
		cancel()
	}
	if !slices.Equal(names, []string{"a", ""}) || last != context.Canceled {
		t.Errorf("the context ended at a: %q, %v", names, last)
	}
	for what, c := range map[string]struct {
		ctx    context.Context
		prefix string
		want   error
	}{
		"done context":                      {ctx, "", context.Canceled},
		"done context, nothing to show":     {ctx, "x", context.Canceled},
		"prefix that is not UTF-8":          {t.Context(), "\xff", lease.ErrName},
		"prefix with a NUL":                 {t.Context(), "\x00", lease.ErrName},
		"prefix that is longer than a name": {t.Context(), strings.Repeat("a", lease.MaxLabel+1), lease.ErrName},
	} {
		pairs := 0
		for e, err := range s.List(c.ctx, c.prefix) {
			if pairs++; e != (lease.Entry{}) || !errors.Is(err, c.want) {
				t.Errorf("%s: %+v, %v", what, e, err)
			}
		}
		if pairs != 1 {
			t.Errorf("%s: %d pairs", what, pairs)
		}
	}
}
