package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

var (
	_ lease.Store   = (*memory.Store)(nil)
	_ lease.Watcher = (*memory.Store)(nil)
	_ lease.Lister  = (*memory.Store)(nil)
	_ lease.Limiter = (*memory.Store)(nil)
)

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

// leased returns a record that is leased to holder for the duration d, from the time of the
// snapshot on.
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

// fill writes so many records that the Store forgets other records. It grants no lease, so the
// epoch of the absence does not rise.
func fill(tb testing.TB, s *memory.Store) {
	for i := range 3 * memory.Idle {
		name := fmt.Sprint("filler-", i)
		old := load(tb, s, name)
		swap(tb, s, name, old, lease.Record{Epoch: old.Record.Epoch})
	}
}

// An unknown name has a zero record. A Swap replaces a record only if it is the loaded record.
func TestSwap(t *testing.T) {
	s := memory.New(nil)
	absent := load(t, s, "a")
	if absent.Record != (lease.Record{}) || absent.Version == "" || absent.Now.IsZero() || absent.Uncertainty != 0 {
		t.Fatalf("unknown name: %+v", absent)
	}
	next := leased(absent, time.Hour)
	put := swap(t, s, "a", absent, next)
	if put.Record != next || put.Version == absent.Version || put.Now.Before(absent.Now) {
		t.Fatalf("swapped %+v, got %+v", next, put)
	}
	if got := load(t, s, "a"); got.Record != next || got.Version != put.Version {
		t.Fatalf("loaded %+v after %+v", got, put)
	}
	if got := load(t, s, "b"); got.Record != (lease.Record{}) {
		t.Fatalf("another name shows %+v", got)
	}

	// SPEC S1: a Swap that returns a conflict changes nothing, and returns the current snapshot
	// without an extra request.
	for what, old := range map[string]lease.Snapshot{
		"absence": absent,
		"nothing": {},
		"foreign": load(t, memory.New(nil), "a"),
		"future":  {Record: put.Record, Version: put.Version, Now: put.Now.Add(time.Hour)},
	} {
		got, err := s.Swap(context.Background(), "a", old, leased(put, time.Minute))
		if err != lease.ErrConflict || got.Record != next || got.Version != put.Version || got.Now.Before(put.Now) {
			t.Errorf("swap of %s: %+v, %v", what, got, err)
		}
	}
	if got := load(t, s, "a"); got.Record != next || got.Version != put.Version {
		t.Fatalf("conflicts changed it to %+v", got)
	}

	// If an equal record is written again, it gets a new version.
	if again := swap(t, s, "a", put, put.Record); again.Version == put.Version || again.Record != next {
		t.Errorf("swapped %+v for itself, got %+v", put, again)
	}
}

// SPEC S2: a Store does not accept a version of another Store, such as a version from before a
// restart.
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

// SPEC S5: a Swap returns a conflict from the Until of the record on, but not before.
func TestSwapAtUntil(t *testing.T) {
	const d = time.Minute
	for _, c := range []struct {
		state    lease.State
		after    time.Duration
		conflict bool
	}{
		{lease.Leased, d - 1, false},
		{lease.Leased, d, true},
		{lease.Leased, d + 1, true},
		{lease.Breaking, d - 1, false},
		{lease.Breaking, d, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.New(nil)
			absent := load(t, s, "a")
			next := leased(absent, d)
			next.State = c.state
			old := swap(t, s, "a", absent, next)
			time.Sleep(c.after)
			late, err := s.Swap(context.Background(), "a", old, leased(old, d))
			if conflict := err == lease.ErrConflict; conflict != c.conflict || err != nil && !conflict {
				t.Fatalf("%v after %v: %v", c.state, c.after, err)
			}
			if !c.conflict {
				return
			}
			// The snapshot that came with the conflict can be swapped, so the conflict ends.
			if late.Record != next || late.Version != old.Version {
				t.Fatalf("%v after %v: shown %+v", c.state, c.after, late)
			}
			swap(t, s, "a", late, leased(late, d))
		})
	}
}

// If a record has no Until, the passing of time causes no conflict.
func TestSwapOfWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		old := load(t, s, "a")
		for _, next := range []lease.Record{
			{State: lease.Leased, ID: holder, Duration: lease.Infinite, Epoch: 1},
			{State: lease.Broken, ID: holder, Duration: lease.Infinite, Epoch: 1},
			{ID: holder, Duration: lease.Infinite, Epoch: 1},
			{Epoch: 1},
		} {
			time.Sleep(1000 * time.Hour)
			old = swap(t, s, "a", old, next)
		}
	})
}

// SPEC S6: for bad input, the Store returns an error and changes nothing.
func TestBadInput(t *testing.T) {
	s := memory.New(nil)
	ctx, done := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	put := swap(t, s, "a", load(t, s, "a"), lease.Record{State: lease.Leased, ID: holder, Duration: lease.Infinite, Epoch: 7})
	signals, err := s.Watch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	good := put.Record
	change := func(f func(*lease.Record)) lease.Record {
		r := good
		f(&r)
		return r
	}
	for _, c := range []struct {
		what string
		ctx  context.Context
		name string
		next lease.Record
		want error
	}{
		{"done context", done, "a", good, context.Canceled},
		{"empty name", ctx, "", good, lease.ErrName},
		{"NUL in the name", ctx, "a\x00", good, lease.ErrName},
		{"name that is not UTF-8", ctx, "a\xff", good, lease.ErrName},
		{"long name", ctx, strings.Repeat("a", lease.MaxLabel+1), good, lease.ErrName},
		{"epoch that falls", ctx, "a", change(func(r *lease.Record) { r.Epoch = 6 }), lease.ErrCorrupt},
		{"zero record", ctx, "a", lease.Record{}, lease.ErrCorrupt},
		{"huge epoch", ctx, "a", change(func(r *lease.Record) { r.Epoch = 1 << 63 }), lease.ErrCorrupt},
		{"no ID", ctx, "a", change(func(r *lease.Record) { r.ID = lease.ID{} }), lease.ErrCorrupt},
		{"unknown state", ctx, "a", change(func(r *lease.Record) { r.State = 9 }), lease.ErrCorrupt},
		{"malformed owner", ctx, "a", change(func(r *lease.Record) { r.Owner = "\xff" }), lease.ErrCorrupt},
		{"local time", ctx, "a", change(func(r *lease.Record) {
			r.Duration, r.Until = time.Hour, time.Now().In(time.FixedZone("", 3600))
		}), lease.ErrCorrupt},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := s.Swap(c.ctx, c.name, put, c.next)
			if !errors.Is(err, c.want) || got != (lease.Snapshot{}) {
				t.Errorf("Swap: %+v, %v; want %v", got, err, c.want)
			}
			if code := lease.Code(0); errors.As(c.want, &code) && !errors.As(err, new(*lease.FieldError)) {
				t.Errorf("Swap: %v names no field", err)
			}
			if c.name == "a" && c.ctx == ctx {
				return
			}
			if got, err := s.Load(c.ctx, c.name); !errors.Is(err, c.want) || got != (lease.Snapshot{}) {
				t.Errorf("Load: %+v, %v; want %v", got, err, c.want)
			}
			if ch, err := s.Watch(c.ctx, c.name); !errors.Is(err, c.want) || ch != nil {
				t.Errorf("Watch: %v, %v; want %v", ch, err, c.want)
			}
		})
	}
	if got := load(t, s, "a"); got.Record != put.Record || got.Version != put.Version {
		t.Errorf("the record changed to %+v", got)
	}
	if all := list(t, s, ""); len(all) != 1 {
		t.Errorf("remembers %+v", all)
	}
	select {
	case <-signals:
		t.Error("a watch was told of a change")
	default:
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
	// With the highest Floor, the Store can issue one token. After the newest possible token, it
	// issues no more tokens.
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
		{&memory.Options{Limits: lease.AzureLimits, Floor: lease.TokenOf(1), Retention: 1, Clock: fixed(time.Unix(0, 0))}, ""},
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

// An authority over the Store applies the Store's limits.
func TestLimits(t *testing.T) {
	a := memory.New(&memory.Options{Limits: lease.AzureLimits}).Authority()
	if _, err := a.Do(t.Context(), "a", acquire); lease.CodeOf(err) != lease.ErrDuration {
		t.Errorf("acquire for %v: %v", acquire.Duration, err)
	}
}

func TestLease(t *testing.T) {
	s := memory.New(nil)
	l, err := s.Lease("a", &session.Options{Owner: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Lease("a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := l.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := other.Acquire(t.Context()); ok || err != nil {
		t.Fatal(ok, err)
	}
	if all := list(t, s, ""); len(all) != 1 || all[0].Record.Owner != "worker-1" || all[0].Record.Token() != l.Token() {
		t.Errorf("list: %+v", all)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := other.Acquire(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lease("", nil); lease.CodeOf(err) != lease.ErrName {
		t.Errorf("Lease of no name: %v", err)
	}
}
