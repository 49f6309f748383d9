package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

var (
	_ lease.Store   = (*memory.Store)(nil)
	_ lease.Watcher = (*memory.Store)(nil)
	_ lease.Lister  = (*memory.Store)(nil)
	_ lease.Limiter = (*memory.Store)(nil)
)

var (
	holder  = lease.ID{1}
	acquire = lease.Request{Action: lease.ActionAcquire, Proposed: holder, Owner: "worker-1", Duration: time.Hour}
	renew   = lease.Request{Action: lease.ActionRenew, ID: holder}
	release = lease.Request{Action: lease.ActionRelease, ID: holder}
)

func do(tb testing.TB, a lease.Authority, name string, req lease.Request) lease.Result {
	tb.Helper()
	res, err := a.Do(context.Background(), name, req)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

func load(tb testing.TB, s *memory.Store, name string) lease.Snapshot {
	tb.Helper()
	snap, err := s.Load(context.Background(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return snap
}

func swap(tb testing.TB, s *memory.Store, name string, old lease.Snapshot, next lease.Record) lease.Snapshot {
	tb.Helper()
	snap, err := s.Swap(context.Background(), name, old, next)
	if err != nil {
		tb.Fatal(err)
	}
	return snap
}

// leased returns a record that is leased to holder for the duration d, from the time of the snapshot on.
func leased(on lease.Snapshot, d time.Duration) lease.Record {
	return lease.Record{State: lease.Leased, ID: holder, Owner: "worker-1", Duration: d, Until: on.Now.Add(d), Epoch: on.Record.Epoch + 1}
}

// SPEC S1 to S10: the Store passes the tests for every store.
func TestConformance(t *testing.T) {
	const retention = time.Second
	options := leasetest.Options{
		Bubble: true,
		Lacks: []string{
			"Options.Store.Another", "Options.Store.Corrupt", "Options.Store.LoseWatches", "Options.Store.Reopen", "Options.Store.StepClock",
		},
		Store: leasetest.StoreHooks{
			Connect: func(_ testing.TB, transmit leasetest.Transmit) lease.Store {
				return linked.Store(memory.New(&memory.Options{Retention: retention}), transmit)
			},
			Forget: func(t testing.TB, s lease.Store) time.Duration {
				once(t, s.(*memory.Store).Authority(), "other-", 3*memory.Idle)
				return retention
			},
		},
	}
	t.Run("own clock", func(t *testing.T) {
		leasetest.TestStore(t, func(testing.TB) lease.Store {
			return memory.New(&memory.Options{Retention: retention})
		}, &options)
	})
	t.Run("injected clock", func(t *testing.T) {
		var clocks sync.Map // maps each Store to its clock
		injected := options
		injected.Store.Forget = func(t testing.TB, s lease.Store) time.Duration {
			fill(t, s.(*memory.Store))
			return retention
		}
		injected.Store.StepClock = func(_ testing.TB, s lease.Store, d time.Duration) {
			clock, _ := clocks.Load(s)
			clock.(*leasefault.Clock).Step(d)
		}
		leasetest.TestStore(t, func(testing.TB) lease.Store {
			clock := leasefault.NewClock()
			s := memory.New(&memory.Options{Retention: retention, Clock: clock})
			clocks.Store(s, clock)
			return s
		}, &injected)
	})
}

// fill writes so many records that the Store forgets others. It grants no lease, so the epoch of the
// absence does not rise.
func fill(tb testing.TB, s *memory.Store) {
	for i := range 3 * memory.Idle {
		name := fmt.Sprint("filler-", i)
		old := load(tb, s, name)
		swap(tb, s, name, old, lease.Record{Epoch: old.Record.Epoch})
	}
}

// SPEC S2: a Store does not accept a version of another Store, such as one from before a restart.
func TestVersionsOfAnotherStore(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		s := memory.New(nil)
		old := load(t, s, "a")
		for range 3 {
			if seen[old.Version] {
				t.Fatalf("version %q came again", old.Version)
			}
			seen[old.Version] = true
			old = swap(t, s, "a", old, leased(old, time.Hour))
		}
	}
}

// SPEC S3: every token that a Store issues is newer than its Floor.
func TestFloor(t *testing.T) {
	floor := lease.TokenOf(41)
	s := memory.New(&memory.Options{Floor: floor})
	a := s.Authority()
	for _, name := range []string{"a", "b"} {
		if got := do(t, a, name, acquire).Record.Token(); got != lease.TokenOf(42) {
			t.Errorf("first token of %s over %s: %s", name, floor, got)
		}
	}
	if _, err := s.Swap(t.Context(), "c", load(t, s, "c"), lease.Record{Epoch: 40}); lease.CodeOf(err) != lease.ErrCorrupt {
		t.Errorf("swap below the floor: %v", err)
	}
	// With the highest Floor, the Store can issue one token, the newest possible one, and no more.
	last := memory.New(&memory.Options{Floor: lease.TokenOf(1<<63 - 2)}).Authority()
	if got := do(t, last, "a", acquire).Record.Token(); got != lease.TokenOf(1<<63-1) {
		t.Errorf("token over the highest floor: %s", got)
	}
	if _, err := last.Do(t.Context(), "a", acquire); lease.CodeOf(err) != lease.ErrEpochLimit {
		t.Errorf("acquire over the last token: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o     *memory.Options
		field string // the field that the error names; empty if the options are valid
	}{
		{nil, ""},
		{&memory.Options{}, ""},
		{&memory.Options{Limits: vectors.AzureLimits, Floor: lease.TokenOf(1), Retention: 1, Clock: fixed(time.Unix(0, 0))}, ""},
		{&memory.Options{Limits: lease.Limits{MinDuration: 2, MaxDuration: 1}}, "Options.Limits.MinDuration"},
		{&memory.Options{Limits: lease.Limits{MaxPeriod: -1}}, "Options.Limits.MaxPeriod"},
		{&memory.Options{Floor: "41"}, "Options.Floor"},
		{&memory.Options{Floor: lease.TokenOf(1<<63 - 2)}, ""},
		{&memory.Options{Floor: lease.TokenOf(1<<63 - 1)}, "Options.Floor"},
		{&memory.Options{Floor: lease.TokenOf(1 << 63)}, "Options.Floor"},
		{&memory.Options{Floor: lease.Token(strings.Repeat("9", 20))}, "Options.Floor"},
		{&memory.Options{Retention: -1}, "Options.Retention"},
		{&memory.Options{Clock: fixed{}}, "Options.Clock"},
	} {
		err := c.o.Validate()
		var bad *lease.FieldError
		if errors.As(err, &bad); (err == nil) != (c.field == "") || bad != nil && bad.Field != c.field {
			t.Errorf("%+v: %v, want one of %q", c.o, err, c.field)
		}
		if bad != nil && (bad.Value == "" || bad.Bound == "") {
			t.Errorf("%+v: %v, without its value or bound", c.o, err)
		}
		func() {
			defer func() {
				if got := recover(); (got == nil) != (err == nil) || got != nil && got.(error).Error() != err.Error() {
					t.Errorf("New of %+v panics with %v, Validate says %v", c.o, got, err)
				}
			}()
			if s := memory.New(c.o); c.o != nil && s.Limits() != c.o.Limits {
				t.Errorf("Limits() = %+v, want %+v", s.Limits(), c.o.Limits)
			}
		}()
	}
}

// The zero Store panics and says why.
func TestZeroStore(t *testing.T) {
	var s memory.Store
	for name, use := range map[string]func(){
		"Load":      func() { s.Load(t.Context(), "a") },
		"Swap":      func() { s.Swap(t.Context(), "a", lease.Snapshot{}, lease.Record{}) },
		"Watch":     func() { s.Watch(t.Context(), "a") },
		"List":      func() { list(t, &s, "") },
		"Lease":     func() { s.Lease("a", nil) },
		"Authority": func() { s.Authority() },
	} {
		for range 2 { // if the first panic left a lock held, the second call would hang
			func() {
				defer func() {
					if got := recover(); got != "memory: use of a zero Store: New makes one" {
						t.Errorf("%s panics with %v", name, got)
					}
				}()
				use()
			}()
		}
	}
}
