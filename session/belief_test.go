package session

import (
	"math"
	"math/big"
	"testing"
	"time"
	"unsafe"

	"github.com/fencedlease/lease"
	"pgregory.net/rapid"
)

// How long a grant is believed: D(1-e)/(1+e) - margin, counted from the sending. SPEC H9.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		d      time.Duration
		rate   float64
		margin time.Duration
		want   time.Duration
	}{
		{30 * time.Second, 0.5, 0, 10*time.Second - 1}, // rounded down, whatever the arithmetic
		{30 * time.Second, 0.5, time.Second, 9*time.Second - 1},
		{30 * time.Second, 0.001, time.Millisecond, 30*time.Second - 59_940_060 - time.Millisecond},
		{10, 0.1, 1, 7}, // 10*0.9/1.1 = 8.18
		{11, 0.1, 1, 7}, // 11*0.9/1.1 = 9, but 0.1 is not a tenth
		{0, 0.001, time.Millisecond, -time.Millisecond},
		{lease.Infinite, 0.001, time.Millisecond, lease.Infinite},
	} {
		s := &Options{MaxClockDrift: c.rate, Margin: c.margin}
		if got := s.budget(c.d); got != c.want {
			t.Errorf("budget(%v) with rate %v and margin %v is %v, want %v", c.d, c.rate, c.margin, got, c.want)
		}
	}
}

// The belief is never longer than the formula in exact arithmetic, and not much shorter. SPEC H9.
func TestBudgetIsRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, math.MaxInt64-1).Draw(t, "d"))
		e := rapid.Float64Range(1e-9, 0.9).Draw(t, "e")
		s := &Options{MaxClockDrift: e, Margin: time.Nanosecond}
		one, rate := big.NewRat(1, 1), new(big.Rat).SetFloat64(e)
		exact := new(big.Rat).Quo(new(big.Rat).Sub(one, rate), new(big.Rat).Add(one, rate))
		exact.Mul(exact, big.NewRat(int64(d), 1)).Sub(exact, one)
		short, _ := new(big.Rat).Sub(exact, big.NewRat(int64(s.budget(d)), 1)).Float64()
		if short < 0 || short > 2+1e-14*float64(d) {
			t.Fatalf("budget(%d) at rate %v is %d ns, which is %v too short", d, e, s.budget(d), short)
		}
	})
}

// asleep returns the time that a machine reads d after from when it slept for some of d: its
// monotonic clock stood still.
func asleep(t *testing.T, from time.Time, d, slept time.Duration) time.Time {
	to := from.Add(d)
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&to)).ext -= int64(slept)
	if to.Sub(from) != d-slept || to.Round(0).Sub(from.Round(0)) != d {
		t.Fatalf("cannot make a time whose clocks differ: %v", to)
	}
	return to
}

// A machine that slept counts the larger of its wall and its elapsed time. SPEC H10.
func TestElapsed(t *testing.T) {
	s := &Options{MaxClockJump: time.Second}
	now := time.Now()
	for _, c := range []struct {
		passed, slept, want time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Second, 59 * time.Second},  // within what a stepped wall clock may do
		{time.Minute, time.Second + 1, time.Minute},   // it slept
		{time.Hour, time.Hour, time.Hour},             // all of the time
		{time.Minute, -time.Hour, 61 * time.Minute},   // the wall clock was set back: does not matter
		{time.Minute, -time.Second, 61 * time.Second}, // nor by little
	} {
		if got := s.elapsed(now, asleep(t, now, c.passed, c.slept)); got != c.want {
			t.Errorf("%v on the wall and %v less elapsed count %v, want %v", c.passed, c.slept, got, c.want)
		}
	}
	if got := s.elapsed(now.Round(0), now.Round(0).Add(time.Minute)); got != time.Minute {
		t.Errorf("without a monotonic reading a minute counts %v", got)
	}
}

// Belief ends at U, not a nanosecond before nor after. SPEC H9.
func TestBeliefEndsAtU(t *testing.T) {
	h := holding(t, nil)
	for _, c := range []struct {
		after time.Duration
		left  time.Duration
		over  bool
	}{
		{0, 9 * time.Second, false},
		{9*time.Second - 1, 1, false},
		{9 * time.Second, 0, true},
		{9*time.Second + 1, -1, true},
		{time.Hour, 9*time.Second - time.Hour, true},
	} {
		now := origin.Add(c.after)
		if left := h.held.left(h.o, now); left != c.left {
			t.Errorf("%v after the sending %v are left, want %v", c.after, left, c.left)
		}
		if reason, over := h.over(now); over != c.over || over && reason != lease.ErrExpired {
			t.Errorf("%v after the sending: over is %v, because %v", c.after, over, reason)
		}
	}
	if until := h.held.until(); !until.Equal(origin.Add(9 * time.Second)) {
		t.Errorf("U is %v", until)
	}
	if _, over := newHolder(nil).over(origin); over {
		t.Error("what was never held is over")
	}
}

// An infinite lease has no U by itself. SPEC H9.
func TestInfiniteBeliefHasNoEnd(t *testing.T) {
	h := newHolder(func(o *Options) { o.Duration = lease.Infinite })
	if v := h.acquired(own, origin, origin.AddDate(200, 0, 0), leased(own, lease.Infinite), nil); v != granted {
		t.Fatalf("not granted, but %d", v)
	}
	if left := h.held.left(h.o, origin.AddDate(250, 0, 0)); left != lease.Infinite {
		t.Errorf("%v are left", left)
	}
	if !h.held.until().IsZero() {
		t.Errorf("U is %v", h.held.until())
	}
	if _, over := h.over(origin.AddDate(250, 0, 0)); over {
		t.Error("over")
	}
}

// D is the smaller of what was asked for and what is sure, and a grant that is answered when
// nothing is sure any more is no grant. SPEC H4, H9.
func TestGrantIsCountedFromTheSending(t *testing.T) {
	for _, c := range []struct {
		sure, took time.Duration
		want       verdict
		left       time.Duration
	}{
		{term, 0, granted, 9 * time.Second},
		{term, 4 * time.Second, granted, 5 * time.Second},
		{term, 9*time.Second - 1, granted, 1},
		{term, 9 * time.Second, late, 0},
		{term, 9*time.Second + 1, late, 0},
		{time.Hour, 0, granted, 9 * time.Second},
		{lease.Infinite, 0, granted, 9 * time.Second},
		{5 * time.Second, time.Second, granted, 3 * time.Second},
		{5 * time.Second, 4 * time.Second, late, 0},
		{time.Second + 1, 0, granted, 1},
		{time.Second, 0, late, 0},
		{0, 0, late, 0},
	} {
		h := newHolder(nil)
		h.doubtful = true
		now := origin.Add(c.took)
		if v := h.acquired(own, origin, now, leased(own, c.sure), nil); v != c.want {
			t.Errorf("sure for %v, answered after %v: verdict %d, want %d", c.sure, c.took, v, c.want)
			continue
		}
		if (h.held != nil) != (c.want == granted) || h.doubtful == (c.want == granted) || h.incarnation != uint64(map[bool]int{true: 1}[c.want == granted]) {
			t.Errorf("sure for %v, answered after %v: the holder is %+v", c.sure, c.took, h)
		}
		if h.held != nil && (h.held.left(h.o, now) != c.left || h.held.id != own || h.held.token != lease.TokenOf(7)) {
			t.Errorf("sure for %v, answered after %v: believes %+v", c.sure, c.took, h.held)
		}
	}
}
