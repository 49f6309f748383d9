package blobtest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

var _ lease.Clock = (*blobtest.Clock)(nil)

// A clock stands still until the test moves it, only moves forward, and wakes its waiters in time.
func TestClock(t *testing.T) {
	c := blobtest.NewClock(start)
	early, late, now := c.After(time.Second), c.After(time.Minute), c.After(0)
	if got := <-now; !got.Equal(start) {
		t.Errorf("%v", got)
	}
	c.Advance(time.Second - 1)
	c.Advance(-time.Hour)
	select {
	case <-early:
		t.Error("woken too early")
	default:
	}
	c.Advance(1)
	if got := <-early; !got.Equal(start.Add(time.Second)) {
		t.Errorf("woken at %v", got)
	}
	select {
	case <-late:
		t.Error("the other one is woken")
	default:
	}
	c.Advance(time.Hour)
	<-late
}

// A fast clock runs at its rate, and Advance moves it, too.
func TestFastClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := blobtest.NewFastClock(start, 60)
		begin := time.Now()
		<-c.After(time.Hour)
		if d := time.Since(begin).Round(10 * time.Millisecond); d != time.Minute {
			t.Errorf("an hour took %v, want 1m", d)
		}
		c.Advance(time.Hour)
		if d := c.Now().Sub(start).Round(time.Second); d != 2*time.Hour {
			t.Errorf("it shows %v, want 2h", d)
		}
	})
}

// A clock stands still at its end, for the Date header and for the leases.
func TestEndOfClock(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	state := func() string { return c.must(200, "HEAD", path, nil, "").header.Get("x-ms-lease-state") }
	c.acquire(idA, "15")
	c.h.Clock().Advance(math.MaxInt64 - 15*time.Second)
	c.acquire(idA, "15")
	c.h.Clock().Advance(15*time.Second - 1)
	if s := state(); s != "leased" {
		t.Errorf("%s before the end, want leased", s)
	}
	c.h.Clock().Advance(1)
	if s := state(); s != "expired" {
		t.Errorf("%s at the end, want expired", s)
	}
	end := c.h.Clock().Now()
	if d := end.Sub(start); d != math.MaxInt64 {
		t.Errorf("it ends after %v", d)
	}
	for _, d := range []time.Duration{1, math.MaxInt64, math.MaxInt64} {
		if c.h.Clock().Advance(d); !c.h.Clock().Now().Equal(end) {
			t.Errorf("%v after its end %v", c.h.Clock().Now(), end)
		}
	}
}

// At any rate, a clock shows no time before its start and does not stop before its end.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{-1, 0, math.NaN(), math.Inf(-1), math.Inf(1), math.MaxFloat64} {
			c := blobtest.NewFastClock(start, rate)
			if now := c.Now(); !now.Equal(start) {
				t.Errorf("at rate %v it begins at %v", rate, now)
			}
			time.Sleep(time.Second)
			if now := c.Now(); now.Equal(start) != !(rate > 0) || now.Before(start) {
				t.Errorf("at rate %v it shows %v after a second", rate, now)
			}
			if now := c.Now(); rate > 1e9 && now.Sub(start) != math.MaxInt64 {
				t.Errorf("at rate %v it ends %v after its start", rate, now.Sub(start))
			}
		}
	})
}
