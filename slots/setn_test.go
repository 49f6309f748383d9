package slots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
)

// Processes that know of different numbers of slots leave each other alone, and so does an operator who tells
// only some of them: the largest number that a living process knows of counts.
func TestLargestN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var broken atomic.Int64
		run := func(s *Slots, name string) {
			all.Go(func() {
				if err := s.Run(ctx, h.work(name, 24*time.Hour)); errors.Is(err, lease.ErrBroken) {
					broken.Add(1)
				}
			})
			time.Sleep(time.Second)
		}
		big, small := h.slots(h.store.Authority(), "big", 5, 0), h.slots(h.store.Authority(), "small", 3, 0)
		for i := range 6 { // one of them waits
			run(big, fmt.Sprint("big", i))
		}
		for i := range 2 {
			run(small, fmt.Sprint("small", i))
		}
		check := func(when string, want int) {
			t.Helper()
			time.Sleep(2 * time.Minute)
			if n := len(strings.Fields(h.working())); n != want {
				t.Errorf("%s, %d work, want %d: %s", when, n, want, h.working())
			}
		}
		check("with 5 and 3 slots", 5)
		if n := broken.Load(); n > 0 {
			t.Errorf("%d were broken, and SetN was not called", n)
		}
		tell := func(s *Slots, n int) {
			t.Helper()
			if err := s.SetN(ctx, n); err != nil {
				t.Error(err)
			}
		}
		tell(small, 2)
		check("when one process was told 2, and the other has 5", 5)
		tell(big, 4)
		check("when one has 4 and the other 2", 4)
		tell(big, 1)
		check("when one has 1 and the other 2", 2)
		tell(big, 6)
		check("when one has 6 again, for the three calls that are left", 3)
		tell(big, 2)
		check("when both have 2", 2)
		cancel()
		all.Wait()
		for e, err := range h.store.Authority().(lease.Lister).List(t.Context(), "x/") {
			if err != nil || e.Record.State.Locked() {
				t.Errorf("%s is left: %v, %v", e.Name, e.Record, err)
			}
		}
	})
}

// A process that knew of more slots and is gone does not count any more. A waiting call of a process that
// was told of fewer then breaks what is too many, without another call of SetN.
func TestLargestNDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		gone, leave := context.WithCancel(ctx)
		var all sync.WaitGroup
		a, b := h.slots(h.store.Authority(), "a", 3, 0), h.slots(h.store.Authority(), "b", 3, 0)
		all.Go(func() { _ = b.Run(gone, h.work("b", time.Hour)) })
		for range 4 {
			time.Sleep(time.Second)
			all.Go(func() { _ = a.Run(ctx, h.work("a", time.Hour)) })
		}
		time.Sleep(time.Minute)
		if err := a.SetN(ctx, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if got := h.working(); got != "a a b" {
			t.Errorf("while a process knows of 3 slots, %q work", got)
		}
		leave()
		time.Sleep(2 * time.Minute)
		if got := h.working(); got != "a" {
			t.Errorf("when it is gone, %q work", got)
		}
		cancel()
		all.Wait()
	})
}

// SetN returns the error of a break that fails, or after RequestTimeout if the authority does not answer. Called
// again, it breaks what is too many. A waiter that is not permitted to break waits for a free slot, and takes it.
func TestSetNFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, forbidden := newHouse(t), lease.Permanent(errors.New("no permission to break"))
		var silentList, silentBreak, refuse atomic.Bool
		s := h.slots(hooked{Authority: h.store.Authority(), list: func(ctx context.Context) (error, bool) {
			if silentList.Load() {
				return silence(ctx)
			}
			return nil, false
		}, do: func(ctx context.Context, _ string, req lease.Request) (error, bool) {
			switch {
			case req.Action == lease.ActionBreak && silentBreak.Load():
				return silence(ctx)
			case req.Action == lease.ActionBreak && refuse.Load():
				return forbidden, true
			}
			return nil, false
		}}, "a", 3, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { _ = s.Run(ctx, h.work("a", time.Duration(i+1)*time.Hour)) })
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		for _, silent := range []*atomic.Bool{&silentList, &silentBreak} {
			silent.Store(true)
			began := time.Now()
			if err := s.SetN(ctx, 1); !errors.Is(err, follow.ErrSilent) || time.Since(began) != s.o.Session.RequestTimeout {
				t.Errorf("no answer: %v after %v", err, time.Since(began))
			}
			silent.Store(false)
		}
		refuse.Store(true)
		if err := s.SetN(ctx, 1); !errors.Is(err, forbidden) {
			t.Errorf("SetN returns %v", err)
		}
		if err := s.Run(ctx, h.work("a", 0)); err != nil || h.gap > s.o.Interval {
			t.Errorf("free for %v: %v", h.gap, err)
		}
		refuse.Store(false)
		if err := s.SetN(ctx, 1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := h.lockedSlots(); n != 0 { // slot 0 was given up after an hour
			t.Errorf("%d slots are locked", n)
		}
		cancel()
		all.Wait()
	})
}

// A slot that SetN has removed between the list and the grant is not worked in.
func TestSetNDuringAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		var s *Slots
		s = h.slots(hooked{Authority: h.store.Authority(), do: func(_ context.Context, name string, req lease.Request) (error, bool) {
			if name == slotName("x/", 1) && req.Action == lease.ActionAcquire {
				s.n.Store(1)
			}
			return nil, false
		}}, "a", 2, 0)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _ = s.Run(t.Context(), h.work("a", time.Minute)) })
			time.Sleep(time.Second)
		}
		all.Wait()
		if h.most != 1 || h.grants["a"] != 2 {
			t.Errorf("%d worked at once, and %d in all", h.most, h.grants["a"])
		}
	})
}

// Both sides of a break log who broke which slot, and why.
func TestBreaksAreLogged(t *testing.T) {
	for what, want := range map[string][2]string{
		"priority": {"a waiter has priority 2, and the holder 1", "for=high why=\"for a higher priority\""},
		"SetN":     {"SetN: no process has more than 1 slots", "why=\"SetN: no process has so many slots\""},
		"operator": {"", "by an operator"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			var holder, breaker bytes.Buffer
			logger := func(to *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
			low, high := h.slots(h.store.Authority(), "low", 2, 1), h.slots(h.store.Authority(), "high", 2, 2)
			low.o.Session.Logger, high.o.Session.Logger = logger(&holder), logger(&breaker)
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for range 2 {
				all.Go(func() { _ = low.Run(ctx, h.work("low", time.Hour)) })
				time.Sleep(time.Second)
			}
			switch what {
			case "priority":
				all.Go(func() { _ = high.Run(ctx, h.work("high", time.Hour)) })
			case "SetN":
				if err := low.SetN(ctx, 1); err != nil {
					t.Error(err)
				}
			default:
				if _, err := lease.Break(ctx, h.store.Authority(), slotName("x/", 1), lease.Grace(time.Minute)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(2 * time.Minute)
			cancel()
			all.Wait()
			said := breaker.String()
			if what == "SetN" { // by the process of the holder
				said = holder.String()
			}
			if want[0] != "" && (!strings.Contains(said, want[0]) || !strings.Contains(said, "slot=1 holder=low")) {
				t.Errorf("%s: the breaker logs\n%s", what, said)
			}
			if said := holder.String(); !strings.Contains(said, want[1]) || !strings.Contains(said, "slot=1") {
				t.Errorf("%s: the holder logs\n%s", what, said)
			}
		})
	}
}
