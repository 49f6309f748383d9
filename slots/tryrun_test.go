package slots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
)

// There are three slots. Of five calls of TryRun that begin at once, three run, and the other two return as
// soon as they see that all slots are taken. A later call does not interrupt a holder, even with a higher
// priority. At the end, no lease is locked.
func TestTryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.store.Authority()
		var ran, refused atomic.Int64
		var all sync.WaitGroup
		try := func(name string, priority int) {
			began := time.Now()
			ok, err := h.slots(a, name, 3, priority).TryRun(t.Context(), h.work(name, time.Minute))
			switch took := time.Since(began); {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case ok:
				ran.Add(1)
			case took > 10*time.Second:
				t.Errorf("%s returned after %v", name, took)
			default:
				refused.Add(1)
			}
		}
		for i := range 5 {
			all.Go(func() { try(fmt.Sprint(i), 0) })
		}
		time.Sleep(30 * time.Second)
		try("first in line", 9)
		all.Wait()
		if ran.Load() != 3 || refused.Load() != 3 || h.most != 3 {
			t.Errorf("%d ran, %d at a time, and %d were refused", ran.Load(), h.most, refused.Load())
		}
		try("later", 0)
		if ran.Load() != 4 {
			t.Error("it did not run with free slots")
		}
		for e := range a.(lease.Lister).List(t.Context(), "x/") {
			if e.Record.State.Locked() {
				t.Errorf("%s is %v", e.Name, e.Record)
			}
		}
	})
}

// While a slot is free that a waiter ahead will take, a call with a high priority waits, and does not break the holder of
// another slot.
func TestTryRunBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.store.Authority()
		low := make(chan error, 1)
		go func() { low <- h.slots(a, "low", 2, 0).Run(t.Context(), h.work("low", time.Hour)) }()
		time.Sleep(10 * time.Second)
		random := h.slots(a, "ahead", 2, 9).drawID()
		ahead := ownerOf("ahead", waiter{id: member.ID(random, "x/"), priority: 9, ticket: 1, n: 2, process: "p"})
		if _, err := a.Do(t.Context(), waiterName("x/", 7), lease.Request{Action: lease.ActionAcquire, Proposed: random, Owner: ahead, Duration: 30 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if ok, err := h.slots(a, "high", 2, 9).TryRun(t.Context(), h.work("high", time.Second)); !ok || err != nil {
			t.Errorf("%v, %v, though the waiter ahead has crashed", ok, err)
		}
		time.Sleep(time.Minute)
		if len(low) > 0 {
			t.Errorf("the holder of the other slot was stopped: %v", <-low)
		}
	})
}

// A request that fails ends TryRun.
func TestTryRunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, broken := newHouse(t), errors.New("broken")
		for _, c := range []lease.Authority{
			hooked{Authority: h.store.Authority(), list: func(context.Context) (error, bool) { return broken, true }},
			hooked{Authority: h.store.Authority(), do: func(context.Context, string, lease.Request) (error, bool) { return broken, true }},
		} {
			if ok, err := h.slots(c, "a", 1, 0).TryRun(t.Context(), h.work("a", 0)); ok || !errors.Is(err, broken) {
				t.Errorf("%v, %v", ok, err)
			}
		}
		if ok, err := h.slots(h.store.Authority(), "a", 1, 0).TryRun(t.Context(), nil); ok || lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("without a function: %v, %v", ok, err)
		}
	})
}
