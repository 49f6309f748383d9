package lease_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
)

// SPEC M15: if a granted request is repeated at the same time, the record does not change.
func TestIdempotence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := requests().Draw(t, "request")
		once, err := lease.Step(records().Draw(t, "record"), req, noon)
		atLimit := req.Action == lease.ActionAcquire && once.Epoch == math.MaxInt64
		breaksOnce := req.Action == lease.ActionBreak && req.Version != 0 // the older dialect refuses a second break
		if err != nil || atLimit || breaksOnce {
			return
		}
		twice, err := lease.Step(once, req, noon)
		want := lease.Code(0)
		switch req.Action {
		case lease.ActionRelease: // after a release, the ID is not the ID of a lease
			want = lease.ErrIDMismatch
		case lease.ActionAcquire:
			twice.Epoch--
		}
		if twice != once || !isExactly(err, want) {
			t.Fatalf("%+v\nonce  %+v\ntwice %+v, %v", req, once, twice, err)
		}
	})
}

// SPEC M13: only a release or a break ends an infinite lease, however much time passes.
func TestInfinite(t *testing.T) {
	end := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	r, err := lease.Step(lease.Record{}, lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: lease.Infinite}, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{noon, end, end.Add(1), time.Unix(1<<60, 0)} {
		if r.At(now) != r || r.Remaining(now) != lease.Infinite {
			t.Errorf("at %v: %+v", now, r.At(now))
		}
		for _, req := range []lease.Request{{Action: lease.ActionRenew, ID: ids["A"]}, {Action: lease.ActionRead}, {Action: lease.ActionWrite, ID: ids["A"]}, {Action: lease.ActionChange, ID: ids["B"], Proposed: ids["A"]}} {
			if next, err := lease.Step(r, req, now); next != r || err != nil {
				t.Errorf("%v at %v: %+v, %v", req.Action, now, next, err)
			}
		}
	}
}

// SPEC M4: Step refuses to raise an epoch that is at or above the limit, even though a record with an epoch
// above it is not valid.
func TestEpochsDoNotWrap(t *testing.T) {
	for _, epoch := range []uint64{math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64} {
		r := lease.Record{State: lease.Leased, ID: ids["A"], Duration: lease.Infinite, Epoch: epoch}
		for _, req := range []lease.Request{
			{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: time.Minute},
			{Action: lease.ActionChange, ID: ids["A"], Proposed: ids["B"]},
		} {
			if next, err := lease.Step(r, req, noon); next != r || err != lease.ErrEpochLimit {
				t.Errorf("%v at %d: %+v, %v", req.Action, epoch, next, err)
			}
		}
	}
}

// SPEC M14: a sum of a time and a duration does not overflow, at both ends of the ranges of time.Duration
// and time.Time.
func TestSaturation(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	first := time.Time{}
	acquire := func(d time.Duration) lease.Request {
		return lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: d}
	}
	leased := func(d time.Duration, until time.Time) lease.Record {
		return lease.Record{State: lease.Leased, ID: ids["A"], Duration: d, Until: until, Epoch: 1}
	}
	forever := leased(lease.Infinite, time.Time{})
	for _, c := range []struct {
		name string
		d    time.Duration
		now  time.Time
		want lease.Record
	}{
		{"the last end", time.Second, last.Add(-time.Second), leased(time.Second, last)},
		{"an end within the last second", 1, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), leased(1, last.Truncate(time.Second).Add(1))},
		{"an end that cannot be written", time.Second, last.Add(-time.Second + 1), forever},
		{"now is the last time", 1, last, forever},
		{"now cannot be written", 1, last.Add(1), forever},
		{"now is the last of time.Time", 1, time.Unix(1<<63-62135596801, 999_999_999), forever},
		{"the longest finite duration", math.MaxInt64 - 1, noon, leased(math.MaxInt64-1, noon.Add(math.MaxInt64-1))},
		{"the longest finite duration near the end", math.MaxInt64 - 1, last.AddDate(-100, 0, 0), forever},
		{"the first time", 1, first, leased(1, first.Add(1))},
	} {
		got, err := lease.Step(lease.Record{}, acquire(c.d), c.now)
		if err != nil || got != c.want || got.Validate() != nil {
			t.Errorf("%s:\n got %+v, %v, %v\nwant %+v", c.name, got, err, got.Validate(), c.want)
		}
		if c.want == forever {
			// A renewal leaves an infinite lease infinite.
			if again, err := lease.Step(got, lease.Request{Action: lease.ActionRenew, ID: ids["A"]}, noon); again != forever || err != nil {
				t.Errorf("%s, renewed: %+v, %v", c.name, again, err)
			}
		}
	}
	// A finite lease becomes infinite if it is renewed when a record cannot hold its new end.
	got, err := lease.Step(leased(time.Minute, last), lease.Request{Action: lease.ActionRenew, ID: ids["A"]}, last.Add(-time.Second))
	if got != forever || err != nil {
		t.Errorf("renewed at the end of time: %+v, %v", got, err)
	}
	// If a record cannot hold the end of a break, the break ends at the last instant of the year 9999. A
	// break that is requested then or later ends at once.
	for _, c := range []struct {
		p    time.Duration
		now  time.Time
		want lease.State
	}{
		{math.MaxInt64, noon, lease.Breaking},
		{math.MaxInt64, last.Add(-1), lease.Breaking},
		{math.MaxInt64, last, lease.Broken},
		{1, last.Add(time.Hour), lease.Broken},
	} {
		got, err := lease.Step(forever, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(c.p)}, c.now)
		tooLate := c.want == lease.Breaking && got.Until.After(last)
		if err != nil || got.State != c.want || got.Validate() != nil || tooLate {
			t.Errorf("break in %v at %v: %+v, %v, %v", c.p, c.now, got, err, got.Validate())
		}
	}
	// Before the year 1, Step grants no request, not even a read.
	for _, now := range []time.Time{first.Add(-1), time.Unix(math.MinInt64, 0), first.AddDate(-1, 0, 0)} {
		for _, req := range []lease.Request{acquire(1), {Action: lease.ActionRead}} {
			if got, err := lease.Step(forever, req, now); err != error(lease.ErrTime) || got != forever {
				t.Errorf("%v at %v: %+v, %v", req.Action, now, got, err)
			}
		}
	}
}

// The time of the authority may have a monotonic reading and any time zone. The times in the record are in
// UTC, without a monotonic reading. SPEC R1.
func TestUntilIsPlain(t *testing.T) {
	zoned := noon.In(time.FixedZone("elsewhere", -5*3600))
	got, err := lease.Step(lease.Record{}, lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: time.Minute}, zoned)
	if err != nil || got.Until != noon.Add(time.Minute) {
		t.Errorf("%v, %v", got.Until, err)
	}
	read := time.Now() // only time.Now returns a time with a monotonic reading; the value of the time does not matter
	got, err = lease.Step(lease.Record{}, lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: time.Minute}, read)
	if err != nil || got.Validate() != nil || got.Until != read.Add(time.Minute).Round(0).UTC() {
		t.Errorf("%v, %v, %v", got.Until, err, got.Validate())
	}
}

// Step refuses a bad argument in every state, and does not change the record. SPEC M18, R4, R6.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		name string
		req  lease.Request
		code lease.Code
		says string
	}{
		{"no action", lease.Request{}, lease.ErrAction, "Request.Action = Action(0): must be acquire"},
		{"unknown action", lease.Request{Action: 8}, lease.ErrAction, "Action(8)"},
		{"no proposed ID", lease.Request{Action: lease.ActionAcquire, Duration: 1}, lease.ErrProposed, "Request.Proposed = none: must be given to acquire"},
		{"no duration", lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"]}, lease.ErrDuration, "Request.Duration = 0s: must be positive"},
		{"negative duration", lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: math.MinInt64}, lease.ErrDuration, "must be positive"},
		{"negative period", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(-1)}, lease.ErrPeriod, "Request.Period = -1ns: must not be negative"},
		{"owner with NUL", lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: 1, Owner: "a\x00"}, lease.ErrOwner, `Request.Owner = "a\x00"`},
		{"owner of invalid UTF-8", lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: 1, Owner: "é\xff"}, lease.ErrOwner, "UTF-8"},
		{"owner with NUL behind UTF-8", lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: 1, Owner: "é\x00"}, lease.ErrOwner, "NUL"},
		{"owner too long", lease.Request{Action: lease.ActionChange, ID: ids["A"], Proposed: ids["B"], Owner: strings.Repeat("x", 1025)}, lease.ErrOwner, "(1025 bytes): must be valid UTF-8 of 1 to 1024 bytes"},
		{"renew without ID", lease.Request{Action: lease.ActionRenew}, lease.ErrID, "Request.ID = none: must be given to renew"},
		{"release without ID", lease.Request{Action: lease.ActionRelease}, lease.ErrID, "release"},
		{"change without ID", lease.Request{Action: lease.ActionChange, Proposed: ids["A"]}, lease.ErrID, "change"},
		{"change without proposed ID", lease.Request{Action: lease.ActionChange, ID: ids["A"]}, lease.ErrProposed, "change"},
		{"change in the old dialect", lease.Request{Action: lease.ActionChange, ID: ids["A"], Proposed: ids["B"], Version: 2009_09_19}, lease.ErrVersion, "Request.Action = change: needs version 2012-02-12 or newer, not 2009-09-19"},
		{"version before leases", lease.Request{Action: lease.ActionRead, Version: 2009_09_18}, lease.ErrVersion, "Version = 2009-09-18: must be a date from 2009-09-19 on"},
		{"version that is no date", lease.Request{Action: lease.ActionRead, Version: 2012_02_30}, lease.ErrVersion, "2012-02-30"},
		{"version that is no month", lease.Request{Action: lease.ActionRead, Version: 2012_13_01}, lease.ErrVersion, "2012-13-01"},
		{"version beyond the years", lease.Request{Action: lease.ActionRead, Version: 10000_01_01}, lease.ErrVersion, "10000-01-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range columns {
				r := lease.Record{State: s, ID: ids["A"], Duration: time.Minute, Epoch: 1}
				if s.Locked() {
					r.Until = noon.Add(time.Minute)
				}
				if next, err := lease.Step(r, c.req, noon); err != error(c.code) || next != r {
					t.Errorf("%v: %+v, %v", s, next, err)
				}
			}
			err := lease.Limits{}.Check(c.req)
			var field *lease.FieldError
			if !errors.As(err, &field) || field.Code != c.code || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if c.code.Refusal() {
				t.Errorf("%v counts as a refusal", c.code)
			}
		})
	}
	// The longest allowed owner, and owners with characters outside ASCII, are accepted.
	for _, owner := range []string{strings.Repeat("x", 1024), "émile", "\ufffd"} {
		req := lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: 1, Owner: owner}
		if next, err := lease.Step(lease.Record{}, req, noon); err != nil || next.Owner != owner {
			t.Errorf("%q: %v", owner, err)
		}
	}
}
