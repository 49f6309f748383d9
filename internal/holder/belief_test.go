package holder

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"pgregory.net/rapid"
)

// A Session relies on a grant for D(1-e)/(1+e) - margin, counted from the sending of the request.
// SPEC H9.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		d      time.Duration
		rate   float64
		margin time.Duration
		want   time.Duration
	}{
		{30 * time.Second, 0.5, 0, 10*time.Second - 1}, // rounded down, even if the result of the arithmetic is rounded up
		{30 * time.Second, 0.5, time.Second, 9*time.Second - 1},
		{30 * time.Second, 0.001, time.Millisecond, 30*time.Second - 59_940_060 - time.Millisecond},
		{10, 0.1, 1, 7}, // 10*0.9/1.1 = 8.18
		{11, 0.1, 1, 7}, // 11*0.9/1.1 = 9, but 0.1 is not a tenth
		{0, 0.001, time.Millisecond, -time.Millisecond},
		{math.MinInt64, 0.001, time.Millisecond, -time.Millisecond},
		{lease.Infinite, 0.001, time.Millisecond, lease.Infinite},
	} {
		s := &Options{MaxClockDrift: c.rate, Margin: c.margin}
		if got := s.Budget(c.d); got != c.want {
			t.Errorf("budget(%v) with rate %v and margin %v is %v, want %v", c.d, c.rate, c.margin, got, c.want)
		}
	}
}

// The belief is never longer than the exact result of the formula, and not much shorter. SPEC H9.
func TestBudgetIsRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, math.MaxInt64-1).Draw(t, "d"))
		e := rapid.Float64Range(1e-9, 0.9).Draw(t, "e")
		s := &Options{MaxClockDrift: e, Margin: time.Nanosecond}
		one, rate := big.NewRat(1, 1), new(big.Rat).SetFloat64(e)
		exact := new(big.Rat).Quo(new(big.Rat).Sub(one, rate), new(big.Rat).Add(one, rate))
		exact.Mul(exact, big.NewRat(int64(d), 1)).Sub(exact, one)
		short, _ := new(big.Rat).Sub(exact, big.NewRat(int64(s.Budget(d)), 1)).Float64()
		if short < 0 || short > 2+1e-14*float64(d) {
			t.Fatalf("budget(%d) at rate %v is %d ns, which is %v too short", d, e, s.Budget(d), short)
		}
	})
}

// If the computer was suspended, the method Elapsed returns the time on the wall clock, not the
// shorter time on the monotonic clock. SPEC H10.
func TestElapsed(t *testing.T) {
	s := &Options{MaxClockJump: time.Second}
	now := time.Now()
	for _, c := range []struct {
		passed, slept, want time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Second, 59 * time.Second},  // the difference of the clocks is at most MaxClockJump
		{time.Minute, time.Second + 1, time.Minute},   // the computer was suspended
		{time.Hour, time.Hour, time.Hour},             // the computer was suspended all the time
		{time.Minute, -time.Hour, 61 * time.Minute},   // the wall clock was set back, which does not matter
		{time.Minute, -time.Second, 61 * time.Second}, // the wall clock was set back a little
	} {
		if got := s.Elapsed(now, shorthand.Asleep(t, now, c.passed, c.slept)); got != c.want {
			t.Errorf("%v on the wall and %v less elapsed count %v, want %v", c.passed, c.slept, got, c.want)
		}
	}
	if got := s.Elapsed(now.Round(0), now.Round(0).Add(time.Minute)); got != time.Minute {
		t.Errorf("without a monotonic reading a minute counts %v", got)
	}
}
