package leasefault_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// Each case says to which of six calls a Line applies its fault.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		name string
		line leasefault.Line[lease.Action]
		hit  []int
	}{
		{"Nth", leasefault.Nth(3, lease.ActionRead, leasefault.FailRequest), []int{3}},
		{"First", leasefault.First(2, lease.ActionRead, leasefault.FailRequest), []int{1, 2}},
		{"From", leasefault.From(5, lease.ActionRead, leasefault.FailRequest), []int{5, 6}},
		{"Always", leasefault.Always(lease.ActionRead, leasefault.FailRequest), []int{1, 2, 3, 4, 5, 6}},
		{"Any", leasefault.Nth(2, leasefault.Any, leasefault.FailRequest), []int{2}},
		{"another action", leasefault.Always(lease.ActionWrite, leasefault.FailRequest), nil},
	} {
		auth := leasefault.Script(lease.NewAuthority(memory.New(nil)), c.line)
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

// Random chooses the same faults for the same seed, and other faults for another seed.
func TestRandomReplays(t *testing.T) {
	met := func(seed uint64) (calls []bool) {
		auth := leasefault.Script(lease.NewAuthority(memory.New(nil)),
			leasefault.Always(leasefault.Any, leasefault.Random(seed, 0.5, leasefault.FailRequest)))
		for range 64 {
			_, err := lease.Inspect(t.Context(), auth, "job")
			calls = append(calls, err != nil)
		}
		return calls
	}
	if !slices.Equal(met(1), met(1)) || slices.Equal(met(1), met(2)) || !slices.Contains(met(1), true) || !slices.Contains(met(1), false) {
		t.Errorf("seed 1: %v\nagain:  %v\nseed 2: %v", met(1), met(1), met(2))
	}
	none := leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.Always(leasefault.Any, leasefault.Random(1, 1)))
	if _, err := lease.Inspect(t.Context(), none, "job"); err != nil {
		t.Errorf("no faults to draw from: %v", err)
	}
}

func TestScriptOfAStore(t *testing.T) {
	inner := memory.New(nil)
	store := leasefault.ScriptStore(inner, leasefault.Nth(2, leasefault.Load, leasefault.Stale), leasefault.Nth(1, leasefault.Swap, leasefault.FailAnswer),
		leasefault.Nth(5, leasefault.LoadOrSwap, leasefault.FailRequest))
	old, err := store.Load(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	next := lease.Record{State: lease.Expired, ID: idA, Duration: time.Second, Epoch: 1}
	if _, err := store.Swap(t.Context(), "job", old, next); !errors.Is(err, leasefault.ErrInjected) {
		t.Errorf("the answer to the swap is not lost: %v", err)
	}
	if stale, err := store.Load(t.Context(), "job"); err != nil || stale != old {
		t.Errorf("the stale load shows %v, %v; want %v", stale, err, old)
	}
	if fresh, err := store.Load(t.Context(), "job"); err != nil || fresh.Record != next {
		t.Errorf("the third load shows %v, %v; want %v", fresh.Record, err, next)
	}
	if _, err := store.Load(t.Context(), "job"); !errors.Is(err, leasefault.ErrInjected) {
		t.Errorf("the fifth call of any kind: %v", err)
	}
}

// Scripts may be used by any number of goroutines; each call is counted once.
func TestScriptCountsEveryCall(t *testing.T) {
	var mu sync.Mutex
	met := 0
	auth := leasefault.Script(lease.NewAuthority(memory.New(nil)), leasefault.First(50, lease.ActionRead, leasefault.Before(func() {
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
