package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// "The lock duration can be 15 to 60 seconds, or can be infinite", and a break period "between 0 and 60
// seconds". SPEC A7.
func TestAzureLimits(t *testing.T) {
	acquire := func(d time.Duration) lease.Request {
		return lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: d}
	}
	breaks := func(p time.Duration) lease.Request {
		return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p)}
	}
	for _, c := range []struct {
		req  lease.Request
		code lease.Code
		says string
	}{
		{acquire(15*time.Second - 1), lease.ErrDuration, "Request.Duration = 14.999999999s: must be infinite or from 15s to 1m0s"},
		{acquire(15 * time.Second), 0, ""},
		{acquire(60 * time.Second), 0, ""},
		{acquire(60*time.Second + 1), lease.ErrDuration, "Request.Duration = 1m0.000000001s: must be infinite or from 15s to 1m0s"},
		{acquire(lease.Infinite), 0, ""},
		{lease.Request{Action: lease.ActionBreak, Period: lease.Grace(lease.Infinite)}, lease.ErrPeriod, "Request.Period = infinite: must be from 0s to 1m0s"},
		{acquire(lease.Infinite - 1), lease.ErrDuration, "Request.Duration = 2562047h47m16.854775806s: must be infinite or from 15s to 1m0s"},
		{breaks(-1), lease.ErrPeriod, "Request.Period = -1ns: must not be negative"},
		{breaks(0), 0, ""},
		{breaks(60 * time.Second), 0, ""},
		{breaks(60*time.Second + 1), lease.ErrPeriod, "Request.Period = 1m0.000000001s: must be from 0s to 1m0s"},
		{lease.Request{Action: lease.ActionBreak}, 0, ""},
		{lease.Request{Action: lease.ActionRenew, ID: ids["A"], Duration: 1, Period: lease.Grace(time.Hour)}, 0, ""},
		{lease.Request{Action: lease.ActionRead, Duration: 1}, 0, ""},
		{lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Version: lease.Version20110818}, 0, ""},
		{lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Hour), Version: lease.Version20110818}, 0, ""},
	} {
		err := vectors.AzureLimits.Check(c.req)
		if lease.CodeOf(err) != c.code || err != nil && err.Error() != c.says {
			t.Errorf("%+v: %v, want %q", c.req, err, c.says)
		}
	}
}

func TestLimits(t *testing.T) {
	acquire := func(d time.Duration) lease.Request {
		return lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: d}
	}
	for _, c := range []struct {
		limits lease.Limits
		req    lease.Request
		says   string
	}{
		{lease.Limits{}, acquire(1), ""},
		{lease.Limits{}, acquire(lease.Infinite - 1), ""},
		{lease.Limits{}, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(lease.Infinite)}, ""},
		{lease.Limits{MinDuration: time.Second}, acquire(time.Second), ""},
		{lease.Limits{MinDuration: time.Second}, acquire(time.Second - 1), "Request.Duration = 999.999999ms: must be infinite or at least 1s"},
		{lease.Limits{MaxDuration: time.Second}, acquire(time.Second), ""},
		{lease.Limits{MaxDuration: time.Second}, acquire(time.Second + 1), "Request.Duration = 1.000000001s: must be infinite or at most 1s"},
		{lease.Limits{MinDuration: time.Millisecond, MaxDuration: time.Second}, acquire(time.Second + 1), "Request.Duration = 1.000000001s: must be infinite or from 1ms to 1s"},
		{lease.Limits{MaxDuration: 30 * time.Second}, lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Version: lease.Version20110818}, "Request.Duration = 1m0s: must be infinite or at most 30s"},
	} {
		err := c.limits.Check(c.req)
		if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%+v, %+v: %v, want %q", c.limits, c.req, err, c.says)
		}
	}
	for _, c := range []struct {
		limits lease.Limits
		says   string
	}{
		{lease.Limits{}, ""},
		{vectors.AzureLimits, ""},
		{lease.Limits{MinDuration: 1}, ""},
		{lease.Limits{MinDuration: 2, MaxDuration: 2}, ""},
		{lease.Limits{MinDuration: 3, MaxDuration: 2}, "Limits.MinDuration = 3ns: must not be above MaxDuration, 2ns"},
		{lease.Limits{MinDuration: lease.Infinite, MaxDuration: time.Minute}, "Limits.MinDuration = infinite: must not be above MaxDuration, 1m0s"},
		{lease.Limits{MinDuration: -1}, "Limits.MinDuration = -1ns: must not be negative"},
		{lease.Limits{MaxDuration: -1}, "Limits.MaxDuration = -1ns: must not be negative"},
		{lease.Limits{MaxPeriod: -1}, "Limits.MaxPeriod = -1ns: must not be negative"},
	} {
		err := c.limits.Validate()
		if (err == nil) != (c.says == "") || err != nil && (err.Error() != c.says || !errors.Is(err, lease.ErrOption)) {
			t.Errorf("%+v: %v, want %q", c.limits, err, c.says)
		}
	}
}

func TestPeriod(t *testing.T) {
	var absent lease.Period
	if d, given := absent.Get(); d != 0 || given || absent.String() != "absent" {
		t.Errorf("absent: %v, %v, %v", d, given, absent)
	}
	if d, given := lease.Grace(0).Get(); d != 0 || !given || lease.Grace(0).String() != "0s" || lease.Grace(0) == absent {
		t.Errorf("In(0): %v, %v, %v", d, given, lease.Grace(0))
	}
}
