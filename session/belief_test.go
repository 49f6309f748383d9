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
	o := &Options{MaxClockJump: time.Second}
	sent := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &belief{sent: sent, budget: 9 * time.Second}
	for _, c := range []struct{ after, left time.Duration }{
		{0, 9 * time.Second},
		{9*time.Second - 1, 1},
		{9 * time.Second, 0},
		{9*time.Second + 1, -1},
		{time.Hour, 9*time.Second - time.Hour},
	} {
		if left := b.left(o, sent.Add(c.after)); left != c.left {
			t.Errorf("%v after the request was sent %v are left, want %v", c.after, left, c.left)
		}
	}
	if until := b.until(); !until.Equal(sent.Add(9 * time.Second)) {
		t.Errorf("U is %v", until)
	}
}

// An infinite lease has no U by itself. SPEC H9.
func TestInfiniteBeliefHasNoEnd(t *testing.T) {
	sent := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &belief{sent: sent, budget: lease.Infinite}
	if left := b.left(&Options{}, sent.AddDate(250, 0, 0)); left != lease.Infinite {
		t.Errorf("%v are left", left)
	}
	if !b.until().IsZero() {
		t.Errorf("U is %v", b.until())
	}
}
