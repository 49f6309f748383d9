package leasefault_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

var _ lease.Clock = (*leasefault.Clock)(nil)

// rings waits for the alarm, and returns the package time that has passed since began.
func rings(t *testing.T, alarm <-chan time.Time, began time.Time, within time.Duration) time.Duration {
	t.Helper()
	select {
	case <-alarm:
		return time.Since(began)
	case <-time.After(within):
		t.Fatalf("the alarm has not rung within %v", within)
		return 0
	}
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(c *leasefault.Clock)
		shows time.Duration // how far the clock has advanced when 10 s of package time have passed
		rings time.Duration // the package time after which an alarm rings that was set for 10 s before the call of do
	}{
		{"as package time has it", func(*leasefault.Clock) {}, 10 * time.Second, 10 * time.Second},
		{"stepped forward", func(c *leasefault.Clock) { c.Step(4 * time.Second) }, 14 * time.Second, 6 * time.Second},
		{"stepped far forward", func(c *leasefault.Clock) { c.Step(time.Hour) }, time.Hour + 10*time.Second, 0},
		{"stepped backward", func(c *leasefault.Clock) { c.Step(-4 * time.Second) }, 6 * time.Second, 14 * time.Second},
		{"at twice the rate", func(c *leasefault.Clock) { c.Rate(2) }, 20 * time.Second, 5*time.Second + 1},
		{"at half the rate", func(c *leasefault.Clock) { c.Rate(0.5) }, 5 * time.Second, 20*time.Second + 1},
		{"paused and resumed", func(c *leasefault.Clock) { c.Pause(); c.Resume() }, 10 * time.Second, 10 * time.Second},
		{"stopped for a minute", func(c *leasefault.Clock) {
			c.Rate(0)
			time.AfterFunc(time.Minute, func() { c.Rate(1) })
		}, 0, 70 * time.Second},
		{"paused for a minute", func(c *leasefault.Clock) {
			c.Pause()
			time.AfterFunc(time.Minute, c.Resume)
		}, 10 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := leasefault.NewClock()
				began := time.Now()
				alarm, first := clock.After(10*time.Second), clock.Now()
				c.do(clock)
				late := make(chan time.Duration)
				go func() { late <- rings(t, alarm, began, time.Hour) }()
				time.Sleep(10 * time.Second)
				if shows := clock.Now().Sub(first); shows != c.shows {
					t.Errorf("after 10 s it has gone %v; want %v", shows, c.shows)
				}
				if rang := <-late; rang != c.rings {
					t.Errorf("the alarm rang after %v; want %v", rang, c.rings)
				}
			})
		})
	}
}

// A clock that begins at a given time stands still until the test moves it, or runs at its rate. It stands still
// for good at the end of the year 9999.
func TestClockAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2012, 1, 26, 12, 0, 0, 0, time.FixedZone("", 3600))
		still, fast := leasefault.NewClockAt(start, 0), leasefault.NewClockAt(start, 60)
		began, early, late, quick := time.Now(), still.After(time.Second), still.After(time.Minute), fast.After(time.Hour)
		still.Step(time.Second - 1)
		time.Sleep(time.Hour)
		select {
		case at := <-early:
			t.Errorf("an alarm rang too early, at %v", at)
		default:
		}
		if now := still.Now(); now != start.Add(time.Second-1).UTC() {
			t.Errorf("it shows %v", now)
		}
		still.Step(1)
		if at := <-early; !at.Equal(start.Add(time.Second)) {
			t.Errorf("an alarm rang at %v", at)
		}
		if late := (<-quick).Sub(start.Add(time.Hour)); late < 0 || late > time.Microsecond {
			t.Errorf("an alarm of the fast clock rang %v late", late)
		}
		if d := fast.Now().Sub(start); d != 60*time.Since(began) {
			t.Errorf("the fast clock has gone %v", d)
		}
		for range 40 {
			still.Step(math.MaxInt64)
		}
		if at := <-late; at != still.Now() && at.Before(start.Add(time.Minute)) {
			t.Errorf("the late alarm rang at %v", at)
		}
		if now := still.Now(); now != time.Date(9999, 12, 31, 23, 59, 59, 1e9-1, time.UTC) {
			t.Errorf("it ends at %v", now)
		}
	})
}

// A clock at an extreme rate neither rings early nor runs backward. An alarm that is not due within a
// century does not wake the test.
func TestClockAtExtremeRates(t *testing.T) {
	const end = time.Duration(math.MaxInt64) // how far a clock can run after it was last set
	for _, c := range []struct {
		rate  float64
		shows time.Duration // how far the clock has advanced when 10 s of package time have passed
		rings time.Duration // the package time after which an alarm of 20 s rings; 0: not within an hour
	}{
		{math.SmallestNonzeroFloat64, 0, 0},
		{1e-300, 0, 0},
		{1e-10, 1, 0},
		{1e-3, 10 * time.Millisecond, 0},
		{1e6, 1e7 * time.Second, 20*time.Microsecond + 1},
		{1e12, end, 1},
		{1e300, end, 1},
		{math.MaxFloat64, end, 1},
	} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := leasefault.NewClock()
				began := time.Now()
				clock.Rate(c.rate)
				first, alarm := clock.Now(), clock.After(20*time.Second)
				if c.rings > 0 {
					if rang := rings(t, alarm, began, time.Hour); rang != c.rings {
						t.Errorf("the alarm rang after %v; want %v", rang, c.rings)
					}
				}
				time.Sleep(10*time.Second - time.Since(began))
				if shows := clock.Now().Sub(first); shows != c.shows {
					t.Errorf("after 10 s it has gone %v; want %v", shows, c.shows)
				}
				last := clock.Now()
				beyond := clock.After(math.MaxInt64)
				time.Sleep(time.Hour)
				if now := clock.Now(); now.Before(last) {
					t.Errorf("it went backward by %v", last.Sub(now))
				}
				select {
				case at := <-beyond:
					t.Errorf("an alarm of 292 years rang at %v", at)
				case at, ok := <-alarm:
					t.Errorf("the alarm of 20 s rang at %v, %v", at, ok)
				default:
				}
				if c.rings == 0 { // the alarm still rings if the rate changes
					began = time.Now()
					clock.Rate(1)
					rings(t, alarm, began, time.Minute)
				}
			})
		})
	}
}

// TestSkew sets the clock of a store wrong, and checks when a second client can acquire the lease of ID A.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(c *leasefault.Clock)
		after time.Duration // the wait before the acquire with ID B, in package time
		free  bool
	}{
		{"right", func(*leasefault.Clock) {}, 59 * time.Second, false},
		{"right, and over", func(*leasefault.Clock) {}, 60 * time.Second, true},
		{"stepped forward", func(c *leasefault.Clock) { c.Step(time.Minute) }, 0, true},
		{"stepped backward", func(c *leasefault.Clock) { c.Step(-time.Hour) }, time.Hour, false},
		{"stepped backward, and over", func(c *leasefault.Clock) { c.Step(-time.Hour) }, time.Hour + time.Minute, true},
		{"fast", func(c *leasefault.Clock) { c.Rate(2) }, 30 * time.Second, true},
		{"slow", func(c *leasefault.Clock) { c.Rate(0.5) }, 119 * time.Second, false},
		{"stopped", func(c *leasefault.Clock) { c.Rate(0) }, 1000 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := leasefault.NewClock()
				auth := lease.NewAuthority(leasefault.Skew(memory.New(nil), clock))
				res, err := auth.Do(t.Context(), "job", acquire(idA))
				if err != nil || res.MaxRemaining() != time.Minute {
					t.Fatalf("granted for %v: %v", res.MaxRemaining(), err)
				}
				c.do(clock)
				time.Sleep(c.after)
				_, err = auth.Do(t.Context(), "job", acquire(idB))
				if c.free && err != nil || !c.free && !errors.Is(err, lease.ErrHeldByOther) {
					t.Errorf("free: %v; the acquire of another: %v", c.free, err)
				}
			})
		})
	}
}

func TestRestartable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			loss leasefault.Loss
			held bool // whether the lease is locked right after the restart
			then bool
			next uint64 // the epoch of the first grant to ID B
		}{
			{"LoseMemory", leasefault.LoseMemory, false, false, 1},
			{"ResetTerm", leasefault.ResetTerm, true, true, 3},
		} {
			store, restart := leasefault.Restartable(memory.New(nil), c.loss)
			auth := lease.NewAuthority(store)
			for range 2 {
				if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(40 * time.Second)
			restart()
			locked := func() bool {
				res, err := lease.Inspect(t.Context(), auth, "job")
				if err != nil {
					t.Fatal(err)
				}
				return res.Record.State.Locked()
			}
			if now := locked(); now != c.held {
				t.Errorf("%s: after the restart it is locked: %v", c.name, now)
			}
			time.Sleep(50 * time.Second)
			if now := locked(); now != c.then {
				t.Errorf("%s: 50 s after the restart it is locked: %v", c.name, now)
			}
			time.Sleep(10 * time.Second)
			for i := range uint64(2) { // the store keeps records that are written after the restart
				res, err := auth.Do(t.Context(), "job", acquire(idB))
				if err != nil || res.Record.Epoch != c.next+i {
					t.Errorf("%s: epoch %d, %v; want %d", c.name, res.Record.Epoch, err, c.next+i)
				}
			}
		}
	})
}

// A record that an operator wrote by hand locks the lease for no longer than the limits of the store
// allow. Answer can remove data from an answer.
func TestTamper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(&memory.Options{Limits: vectors.AzureLimits})
		auth := lease.NewAuthority(leasefault.Tamper(store, func(name string, r *lease.Record) {
			if r.State == lease.Leased && name == "job" {
				r.Until = r.Until.AddDate(900, 0, 0)
			}
		}))
		if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
			t.Fatal(err)
		}
		res, err := auth.Do(t.Context(), "job", acquire(idB))
		if !errors.Is(err, lease.ErrHeldByOther) || res.MaxRemaining() > time.Minute {
			t.Errorf("the hostile record holds it for %v: %v", res.MaxRemaining(), err)
		}
		hiding := leasefault.Answer(auth, func(_ lease.Request, res *lease.Result, _ *error) { res.Record.ID = lease.ID{} })
		if res, err := lease.Inspect(t.Context(), hiding, "job"); err != nil || !res.Record.ID.IsZero() {
			t.Errorf("the answer shows %v, %v", res.Record.ID, err)
		}
	})
}
