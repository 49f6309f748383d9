package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

var (
	idA = lease.MustParseID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
	idB = lease.MustParseID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
)

func acquire(id lease.ID) lease.Request {
	return lease.Request{Action: lease.Acquire, Proposed: id, Duration: time.Minute}
}

func release(id lease.ID) lease.Request { return lease.Request{Action: lease.Release, ID: id} }

// epoch looks behind the faults.
func epoch(t *testing.T, a lease.Authority) uint64 {
	t.Helper()
	res, err := lease.Inspect(t.Context(), a, "job")
	if err != nil {
		t.Fatal(err)
	}
	return res.Record.Epoch
}

// What the first acquire meets, how it ends for the caller, and what becomes of it.
func TestFaults(t *testing.T) {
	const patience = 10 * time.Second // of the caller
	for _, c := range []struct {
		name    string
		fault   func(t *testing.T) leasetest.Fault
		err     error // nil: the caller is granted
		took    time.Duration
		grants  uint64        // when the caller has his answer
		later   time.Duration // after that
		grants2 uint64
	}{
		{"LoseRequest", plain(leasetest.LoseRequest), context.DeadlineExceeded, patience, 0, 0, 0},
		{"LoseAnswer", plain(leasetest.LoseAnswer), context.DeadlineExceeded, patience, 1, 0, 1},
		{"FailRequest", plain(leasetest.FailRequest), leasetest.ErrInjected, 0, 0, 0, 0},
		{"FailAnswer", plain(leasetest.FailAnswer), leasetest.ErrInjected, 0, 1, 0, 1},
		{"DelayRequest", plain(leasetest.DelayRequest(time.Second)), nil, time.Second, 1, 0, 1},
		{"DelayRequest beyond the context", plain(leasetest.DelayRequest(time.Minute)), context.DeadlineExceeded, patience, 0, time.Hour, 0},
		{"DelayAnswer", plain(leasetest.DelayAnswer(time.Second)), nil, time.Second, 1, 0, 1},
		{"DelayAnswer beyond the context", plain(leasetest.DelayAnswer(time.Minute)), context.DeadlineExceeded, patience, 1, 0, 1},
		{"Duplicate", plain(leasetest.Duplicate), nil, 0, 2, 0, 2},
		{"Stale without an answer before", plain(leasetest.Stale), nil, 0, 1, 0, 1},
		{"Detach, answered in time", func(t *testing.T) leasetest.Fault { return leasetest.Detach(t, leasetest.DelayRequest(time.Second)) }, nil, time.Second, 1, 0, 1},
		{"Detach, too late", func(t *testing.T) leasetest.Fault { return leasetest.Detach(t, leasetest.DelayRequest(time.Minute)) },
			context.DeadlineExceeded, patience, 0, time.Minute, 1},
		{"Repeat", func(t *testing.T) leasetest.Fault { return leasetest.Repeat(t, leasetest.DelayRequest(time.Minute)) }, nil, 0, 1, time.Minute, 2},
		{"Repeat, ended by the test", func(t *testing.T) leasetest.Fault { return leasetest.Repeat(t, leasetest.LoseRequest) }, nil, 0, 1, time.Minute, 1},
		{"Chain", plain(leasetest.Chain(leasetest.DelayRequest(time.Second), leasetest.DelayAnswer(2*time.Second), leasetest.Duplicate)), nil, 3 * time.Second, 2, 0, 2},
		{"Chain of none", plain(leasetest.Chain()), nil, 0, 1, 0, 1},
		{"Chain, an error inside", plain(leasetest.Chain(leasetest.DelayAnswer(time.Second), leasetest.FailAnswer)), leasetest.ErrInjected, time.Second, 1, 0, 1},
		{"Chain of Repeat and FailAnswer", func(t *testing.T) leasetest.Fault {
			return leasetest.Chain(leasetest.Repeat(t, leasetest.DelayRequest(time.Minute)), leasetest.FailAnswer)
		}, leasetest.ErrInjected, 0, 1, time.Minute, 2},
		{"If not", plain(leasetest.If(func() bool { return false }, leasetest.FailRequest)), nil, 0, 1, 0, 1},
		{"If", plain(leasetest.If(func() bool { return true }, leasetest.FailRequest)), leasetest.ErrInjected, 0, 0, 0, 0},
		{"a fault that does nothing", plain(func(context.Context, *leasetest.Call) error { return nil }), leasetest.ErrInjected, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				truth := lease.NewAuthority(memory.New(nil))
				auth := leasetest.Script(truth, leasetest.Nth(1, lease.Acquire, c.fault(t)))
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				res, err := auth.Do(ctx, "job", acquire(idA))
				took := time.Since(began)
				if !errors.Is(err, c.err) || (err == nil) != (res.Record.ID == idA) || took != c.took {
					t.Errorf("after %v: %v, %v; want after %v: %v", took, res.Record, err, c.took, c.err)
				}
				if n := epoch(t, truth); n != c.grants {
					t.Errorf("the caller has his answer, and %d grants were made; want %d", n, c.grants)
				}
				time.Sleep(c.later)
				synctest.Wait()
				if n := epoch(t, truth); n != c.grants2 {
					t.Errorf("in the end %d grants were made; want %d", n, c.grants2)
				}
				if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
					t.Errorf("the second call met a fault of the first: %v", err)
				}
			})
		})
	}
}

func plain(f leasetest.Fault) func(*testing.T) leasetest.Fault {
	return func(*testing.T) leasetest.Fault { return f }
}

// A caller who would wait for ever gets an error.
func TestLostWithoutAnEnd(t *testing.T) {
	auth := leasetest.Script(lease.NewAuthority(memory.New(nil)), leasetest.Always(lease.Acquire, leasetest.LoseAnswer))
	if _, err := auth.Do(context.Background(), "job", acquire(idA)); !errors.Is(err, leasetest.ErrInjected) {
		t.Error(err)
	}
}

// A refusal comes through a delay with its code and its record.
func TestRefusalsComeThrough(t *testing.T) {
	auth := leasetest.Script(lease.NewAuthority(memory.New(nil)), leasetest.Always(leasetest.Any, leasetest.Duplicate))
	if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
		t.Fatal(err)
	}
	res, err := auth.Do(t.Context(), "job", acquire(idB))
	if !errors.Is(err, lease.ErrHeld) || res.Record.ID != idA {
		t.Error(res.Record, err)
	}
}

// Which of six calls a line chooses.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		name string
		line leasetest.Line[lease.Action]
		hit  []int
	}{
		{"Nth", leasetest.Nth(3, lease.Read, leasetest.FailRequest), []int{3}},
		{"First", leasetest.First(2, lease.Read, leasetest.FailRequest), []int{1, 2}},
		{"From", leasetest.From(5, lease.Read, leasetest.FailRequest), []int{5, 6}},
		{"Always", leasetest.Always(lease.Read, leasetest.FailRequest), []int{1, 2, 3, 4, 5, 6}},
		{"Any", leasetest.Nth(2, leasetest.Any, leasetest.FailRequest), []int{2}},
		{"another action", leasetest.Always(lease.Write, leasetest.FailRequest), nil},
	} {
		auth := leasetest.Script(lease.NewAuthority(memory.New(nil)), c.line)
		var hit []int
		for n := range 6 {
			if _, err := lease.Inspect(t.Context(), auth, "job"); err != nil {
				hit = append(hit, n+1)
			}
		}
		if !slices.Equal(hit, c.hit) {
			t.Errorf("%s: the calls %v met the fault; want %v", c.name, hit, c.hit)
		}
	}
}

// The same seed gives the same faults, another gives others.
func TestRandomReplays(t *testing.T) {
	met := func(seed uint64) (calls []bool) {
		auth := leasetest.Script(lease.NewAuthority(memory.New(nil)),
			leasetest.Always(leasetest.Any, leasetest.Random(seed, 0.5, leasetest.FailRequest)))
		for range 64 {
			_, err := lease.Inspect(t.Context(), auth, "job")
			calls = append(calls, err != nil)
		}
		return calls
	}
	if !slices.Equal(met(1), met(1)) || slices.Equal(met(1), met(2)) || !slices.Contains(met(1), true) || !slices.Contains(met(1), false) {
		t.Errorf("seed 1: %v\nagain:  %v\nseed 2: %v", met(1), met(1), met(2))
	}
	none := leasetest.Script(lease.NewAuthority(memory.New(nil)), leasetest.Always(leasetest.Any, leasetest.Random(1, 1)))
	if _, err := lease.Inspect(t.Context(), none, "job"); err != nil {
		t.Errorf("no faults to draw from: %v", err)
	}
}

func TestScriptOfAStore(t *testing.T) {
	inner := memory.New(nil)
	store := leasetest.ScriptStore(inner, leasetest.Nth(2, leasetest.Load, leasetest.Stale), leasetest.Nth(1, leasetest.Swap, leasetest.FailAnswer),
		leasetest.Nth(5, leasetest.LoadOrSwap, leasetest.FailRequest))
	old, err := store.Load(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	next := lease.Record{State: lease.Expired, ID: idA, Duration: time.Second, Epoch: 1}
	if _, err := store.Swap(t.Context(), "job", old, next); !errors.Is(err, leasetest.ErrInjected) {
		t.Errorf("the answer to the swap is not lost: %v", err)
	}
	if stale, err := store.Load(t.Context(), "job"); err != nil || stale != old {
		t.Errorf("the stale load shows %v, %v; want %v", stale, err, old)
	}
	if fresh, err := store.Load(t.Context(), "job"); err != nil || fresh.Record != next {
		t.Errorf("the third load shows %v, %v; want %v", fresh.Record, err, next)
	}
	if _, err := store.Load(t.Context(), "job"); !errors.Is(err, leasetest.ErrInjected) {
		t.Errorf("the fifth call of any kind: %v", err)
	}
}

// The release overtakes the renewal that was sent before it.
func TestGateReorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := leasetest.NewGate()
		auth := leasetest.Script(lease.NewAuthority(memory.New(nil)),
			leasetest.Nth(1, lease.Renew, gate.HoldRequest), leasetest.Nth(1, lease.Release, gate.OpenAfter))
		if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
			t.Fatal(err)
		}
		renewed := make(chan error, 1)
		go func() {
			_, err := auth.Do(t.Context(), "job", lease.Request{Action: lease.Renew, ID: idA})
			renewed <- err
		}()
		<-gate.Reached()
		if _, err := auth.Do(t.Context(), "job", release(idA)); err != nil {
			t.Errorf("release: %v", err)
		}
		if err := <-renewed; !errors.Is(err, lease.ErrIDMismatch) {
			t.Errorf("the renewal came second, and got %v", err)
		}
		gate.Open() // once more is no harm
	})
}

func TestGateHoldsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := leasetest.NewGate()
		truth := lease.NewAuthority(memory.New(nil))
		auth := leasetest.Script(truth, leasetest.Nth(1, lease.Acquire, gate.HoldAnswer), leasetest.Nth(1, lease.Read, gate.OpenBefore))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := auth.Do(ctx, "job", acquire(idA)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the gate is closed, and the answer is %v", err)
		}
		if n := epoch(t, truth); n != 1 {
			t.Errorf("%d grants; the request must have been carried out", n)
		}
		if _, err := lease.Inspect(t.Context(), auth, "job"); err != nil {
			t.Error(err)
		}
	})
}

// A break by a third party, and the end of the caller's context, at a chosen point.
func TestBeforeAndAfter(t *testing.T) {
	truth := lease.NewAuthority(memory.New(nil))
	ctx, cancel := context.WithCancel(t.Context())
	auth := leasetest.Script(truth,
		leasetest.Nth(1, lease.Renew, leasetest.Before(func() {
			if _, err := lease.Revoke(t.Context(), truth, "job", lease.In(0)); err != nil {
				t.Error(err)
			}
		})),
		leasetest.Nth(2, lease.Acquire, leasetest.After(cancel)))
	if _, err := auth.Do(ctx, "job", acquire(idA)); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Do(ctx, "job", lease.Request{Action: lease.Renew, ID: idA}); !errors.Is(err, lease.ErrBroken) {
		t.Errorf("the lease was broken before the renewal: %v", err)
	}
	if _, err := auth.Do(ctx, "job", acquire(idB)); err != nil || ctx.Err() == nil {
		t.Errorf("the acquire came before the end of the context: %v, %v", err, ctx.Err())
	}
}

// Every wrapper has the abilities of what it wraps, and no others.
func TestWrappersPassOn(t *testing.T) {
	type store = lease.Store
	clock := leasetest.NewClock()
	for name, wrap := range map[string]func(store) store{
		"ScriptStore": func(s store) store { return leasetest.ScriptStore(s) },
		"Skew":        func(s store) store { return leasetest.Skew(s, clock) },
		"Restartable": func(s store) store { r, _ := leasetest.Restartable(s, leasetest.LoseMemory); return r },
		"Tamper":      func(s store) store { return leasetest.Tamper(s, func(string, *lease.Record) {}) },
		"History":     new(leasetest.History).Store,
	} {
		full := memory.New(nil)
		for what, inner := range map[string]store{
			"both": full,
			"none": struct{ store }{full},
			"watches": struct {
				store
				lease.Watcher
			}{full, full},
			"limits": struct {
				store
				lease.Limiter
			}{full, full},
		} {
			_, watches := inner.(lease.Watcher)
			_, limits := inner.(lease.Limiter)
			_, passesWatch := wrap(inner).(lease.Watcher)
			_, passesLimits := wrap(inner).(lease.Limiter)
			if watches != passesWatch || limits != passesLimits {
				t.Errorf("%s of %s: Watcher %v, Limiter %v", name, what, passesWatch, passesLimits)
			}
		}
	}
	for name, wrap := range map[string]func(lease.Authority) lease.Authority{
		"Script": func(a lease.Authority) lease.Authority { return leasetest.Script(a) },
		"Answer": func(a lease.Authority) lease.Authority {
			return leasetest.Answer(a, func(lease.Request, *lease.Result, *error) {})
		},
		"History": new(leasetest.History).Authority,
	} {
		full := lease.NewAuthority(memory.New(nil))
		if _, ok := wrap(full).(lease.Watcher); !ok {
			t.Errorf("%s does not pass on Watcher", name)
		}
		if _, ok := wrap(struct{ lease.Authority }{full}).(lease.Watcher); ok {
			t.Errorf("%s makes a Watcher of what is none", name)
		}
	}
}

// Scripts may be used by any number of goroutines; each call is counted once.
func TestScriptCountsEveryCall(t *testing.T) {
	var mu sync.Mutex
	met := 0
	auth := leasetest.Script(lease.NewAuthority(memory.New(nil)), leasetest.First(50, lease.Read, leasetest.Before(func() {
		mu.Lock()
		defer mu.Unlock()
		met++
	})))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() { _, _ = lease.Inspect(t.Context(), auth, fmt.Sprint("job-", i)) })
	}
	wg.Wait()
	if met != 50 {
		t.Errorf("%d calls met the fault; want 50", met)
	}
}
