package slots

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
)

// Processes that know of different numbers of slots leave each other alone, and so does an operator who tells
// only some of them: the largest number that a living process knows of counts.
func TestLargestN(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		big, small := h.slots("x", 5, 0), h.slots("x", 3, 0)
		h.run(small, 24*time.Hour)
		h.run(small, 24*time.Hour)
		for range 6 { // three of them wait
			h.run(big, 24*time.Hour)
		}
		h.expect(2*time.Minute, "x x x x x", "with 5 and 3 slots")
		if n := h.broken.Load(); n > 0 {
			t.Errorf("%d were broken, and SetN was not called", n)
		}
		for _, step := range []struct {
			s    *Slots
			n    int
			want string
		}{{small, 2, "x x x x x"}, {big, 4, "x x x x"}, {big, 1, "x x"}, {small, 1, "x"}, {big, 6, "x x x x"}, {big, 1, "x"}} {
			if err := step.s.SetN(h.ctx, step.n); err != nil {
				t.Error(err)
			}
			h.expect(2*time.Minute, step.want, "when a process was told another number")
		}
	})
}

// A process that knew of more slots and is gone does not count any more. A waiting call of a process that
// was told of fewer then breaks what is too many, without another call of SetN.
func TestLargestNDies(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		a := h.slots("a", 3, 0)
		_, leave := h.run(h.slots("b", 3, 0), time.Hour)
		for range 4 {
			h.run(a, time.Hour)
		}
		time.Sleep(time.Minute)
		if err := a.SetN(h.ctx, 1); err != nil {
			t.Fatal(err)
		}
		h.expect(2*time.Minute, "a a b", "while a process knows of 3 slots")
		leave()
		h.expect(2*time.Minute, "a", "when it is gone")
	})
}

// SetN returns the error of a break that fails, or after RequestTimeout if the authority does not answer. Called
// again, it breaks what is too many. A waiter that is not permitted to break waits for a free slot, and takes it.
func TestSetNFails(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		var silent, refused atomic.Value // kinds of requests
		forbidden := lease.Permanent(errors.New("no permission to break"))
		s := h.over(wire{h.store, func(ctx context.Context, what string) (error, bool) {
			switch kind, _, _ := strings.Cut(what, " "); kind {
			case silent.Load():
				return silence(ctx)
			case refused.Load():
				return forbidden, true
			}
			return nil, false
		}}, "a", 3, 0)
		for i := range 3 {
			h.run(s, time.Duration(i+1)*time.Hour)
		}
		time.Sleep(time.Minute)
		for _, kind := range []string{"list", "break"} {
			silent.Store(kind)
			began := time.Now()
			if err := s.SetN(h.ctx, 1); !errors.Is(err, follow.ErrSilent) || time.Since(began) != s.o.Session.RequestTimeout {
				t.Errorf("no answer: %v after %v", err, time.Since(began))
			}
		}
		silent.Store("")
		refused.Store("break")
		if err := s.SetN(h.ctx, 1); !errors.Is(err, forbidden) {
			t.Errorf("SetN returns %v", err)
		}
		if err := s.Run(h.ctx, h.work(s, 0)); err != nil || h.gap > s.o.Interval {
			t.Errorf("free for %v: %v", h.gap, err)
		}
		refused.Store("")
		if err := s.SetN(h.ctx, 1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n, _ := h.count("x/slots/"); n != 0 { // slot 0 was given up after an hour
			t.Errorf("%d slots are locked", n)
		}
	})
}

// A slot that SetN has removed between the list and the grant is not worked in.
func TestSetNDuringAcquire(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		var s *Slots
		s = h.over(wire{h.store, func(_ context.Context, what string) (error, bool) {
			if what == "acquire x/slots/1" {
				s.n.Store(1)
			}
			return nil, false
		}}, "a", 2, 0)
		h.run(s, time.Minute)
		h.run(s, time.Minute)
		h.all.Wait()
		if h.most != 1 || h.grants["a"] != 2 {
			t.Errorf("%d worked at once, and %d in all", h.most, h.grants["a"])
		}
	})
}

// Both sides of a break log who broke which slot, and why.
func TestBreaksAreLogged(t *testing.T) {
	for what, want := range map[string][]string{
		"priority": {`broke the lease of a slot" prefix=x/ slot=1 holder=low why="a waiter has priority 2, and the holder 1"`, `was broken" prefix=x/ slot=1 for=high why="for a higher priority"`},
		"SetN":     {`broke the lease of a slot" prefix=x/ slot=1 holder=low why="SetN: no process has more than 1 slots"`, `was broken" prefix=x/ slot=1 for="" why="SetN: no process has so many slots"`},
		"operator": {`was broken" prefix=x/ slot=1 for="" why="by an operator, or`},
	} {
		inHouse(t, func(t *testing.T, h *house) {
			var log bytes.Buffer
			low, high := h.slots("low", 2, 1), h.slots("high", 2, 2)
			low.o.Session.Logger = slog.New(slog.NewTextHandler(&log, nil))
			high.o.Session.Logger = low.o.Session.Logger
			h.run(low, time.Hour)
			h.run(low, time.Hour)
			var err error
			switch what {
			case "priority":
				h.run(high, time.Hour)
			case "SetN":
				err = low.SetN(h.ctx, 1)
			default:
				_, err = lease.Break(h.ctx, h.store, slotName("x/", 1), lease.Grace(time.Minute))
			}
			time.Sleep(2 * time.Minute)
			h.stop()
			h.all.Wait()
			for _, record := range want {
				if err != nil || !strings.Contains(log.String(), record) {
					t.Errorf("%s: %v; no record has %s:\n%s", what, err, record, &log)
				}
			}
		})
	}
}
