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

// records draws a valid record in any state. The record may end before, at or after noon.
func records() *rapid.Generator[lease.Record] {
	return rapid.Custom(func(t *rapid.T) lease.Record {
		r := lease.Record{
			State: rapid.SampledFrom(columns[:]).Draw(t, "state"),
			Epoch: rapid.OneOf(rapid.Uint64Range(1, 9), rapid.Just(uint64(math.MaxInt64)), rapid.Just(uint64(math.MaxInt64-1))).Draw(t, "epoch"),
		}
		if r.State == lease.Available && rapid.Bool().Draw(t, "forgotten") {
			return r
		}
		r.ID = rapid.SampledFrom([]lease.ID{ids["A"], ids["B"]}).Draw(t, "id")
		r.Owner = rapid.OneOf(rapid.Just(""), rapid.StringN(1, 20, 200).Filter(func(s string) bool { return lease.CheckOwner(s) == nil })).Draw(t, "owner")
		r.Duration = durations().Filter(func(d time.Duration) bool { return d > 0 }).Draw(t, "duration")
		if r.State == lease.Expired && r.Duration == lease.Infinite {
			r.Duration = time.Minute
		}
		if r.State == lease.Breaking || r.State == lease.Leased && r.Duration != lease.Infinite {
			r.Until = noon.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(time.Minute)).Draw(t, "until")))
		}
		return r
	})
}

// property calls the check f with random records and requests, at noon.
func property(t *testing.T, f func(t *rapid.T, r lease.Record, req lease.Request, step func(lease.Record, lease.Request) (lease.Record, error))) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		f(t, records().Draw(t, "record"), requests().Draw(t, "request"), func(r lease.Record, req lease.Request) (lease.Record, error) {
			next, err := lease.Step(r, req, noon)
			checkStep(t, r, req, noon, next, err)
			return next, err
		})
	})
}

// SPEC M3: while a lease is locked, an acquire with another ID is refused.
func TestLockedExcludes(t *testing.T) {
	property(t, func(t *rapid.T, r lease.Record, req lease.Request, step func(lease.Record, lease.Request) (lease.Record, error)) {
		req.Action, req.Proposed, req.Duration = lease.ActionAcquire, ids["C"], time.Minute
		_, err := step(r, req)
		if locked := r.At(noon).State.Locked(); locked != errors.Is(err, lease.ErrHeldByOther) {
			t.Fatalf("locked %v, %v", locked, err)
		}
	})
}

// SPEC M6: a break of a finite lease ends when the lease would end or when the period is over,
// whichever is earlier. Without a period, the break of a finite lease ends when the lease would
// end, and the break of an infinite lease ends at once.
func TestBreakArithmetic(t *testing.T) {
	property(t, func(t *rapid.T, r lease.Record, req lease.Request, step func(lease.Record, lease.Request) (lease.Record, error)) {
		left := r.At(noon).Remaining(noon)
		req.Action, req.Version = lease.ActionBreak, 0
		next, err := step(r, req)
		if err != nil {
			return
		}
		want := left
		if p, given := req.Period.Get(); given {
			want = min(left, p)
		} else if left == lease.Infinite {
			want = 0
		}
		if got := next.Remaining(noon); got != want || (got > 0) != (next.State == lease.Breaking) {
			t.Fatalf("left %v, %v: %v, %v", left, req.Period, got, next.State)
		}
	})
}

// A Breaking lease cannot become Leased, and a Broken lease becomes Leased only by an acquire.
// SPEC M7, M8.
func TestBrokenStaysBroken(t *testing.T) {
	property(t, func(t *rapid.T, r lease.Record, req lease.Request, step func(lease.Record, lease.Request) (lease.Record, error)) {
		before := r.At(noon).State
		next, _ := step(r, req)
		if next.State == lease.Leased && (before == lease.Breaking || before == lease.Broken && req.Action != lease.ActionAcquire) {
			t.Fatalf("%v, %v: %v", before, req.Action, next.State)
		}
	})
}

// SPEC M9: a renewal of an Expired lease is granted if and only if no write and no acquire has been
// granted since the lease expired. Reads and refused writes do not matter.
func TestRenewalOfExpired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := lease.Record{State: lease.Expired, ID: ids["A"], Duration: time.Minute, Epoch: 7}
		renewable := true
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			req := requests().Draw(t, "request")
			req.Version = 0
			before := r
			next, err := lease.Step(r, req, noon)
			r = next
			switch req.Action {
			case lease.ActionRenew:
				if err == nil {
					return // the lease is Leased again
				}
			case lease.ActionRead:
			case lease.ActionWrite:
				renewable = renewable && !(req.ID == lease.ID{} && !before.State.Locked())
			default:
				renewable = renewable && err != nil
			}
		}
		_, err := lease.Step(r, lease.Request{Action: lease.ActionRenew, ID: ids["A"]}, noon)
		if r.State == lease.Leased && r.ID == ids["A"] {
			return // the lease was acquired again under its own ID
		}
		if (err == nil) != renewable {
			t.Fatalf("renewable %v: %v from %+v", renewable, err, r)
		}
	})
}

// SPEC M15: if a granted request is repeated at the same time, the repetition does not change the
// record.
func TestIdempotence(t *testing.T) {
	property(t, func(t *rapid.T, r lease.Record, req lease.Request, step func(lease.Record, lease.Request) (lease.Record, error)) {
		once, err := step(r, req)
		if err != nil {
			return
		}
		twice, err := step(once, req)
		switch req.Action {
		case lease.ActionRelease: // after a release, the ID is not the ID of a lease
			if twice != once || !errors.Is(err, lease.ErrIDMismatch) {
				t.Fatalf("%+v, %v", twice, err)
			}
		case lease.ActionAcquire:
			if once.Epoch == math.MaxInt64 {
				return
			}
			if twice.Epoch--; twice != once || err != nil {
				t.Fatalf("%+v, %v", twice, err)
			}
		case lease.ActionBreak:
			if req.Version != 0 {
				return // the older dialect refuses a second break, according to the change list
			}
			fallthrough
		default:
			if twice != once || err != nil {
				t.Fatalf("%+v, %v", twice, err)
			}
		}
	})
}

// SPEC M16: a lease expires and a break ends without any request. If At is called before Step, the
// result of Step stays the same.
func TestPassingOfTime(t *testing.T) {
	property(t, func(t *rapid.T, r lease.Record, req lease.Request, _ func(lease.Record, lease.Request) (lease.Record, error)) {
		between := noon.Add(time.Duration(rapid.Int64Range(-int64(2*time.Minute), 0).Draw(t, "between")))
		looked, err := lease.Step(r.At(between), req, noon)
		unseen, err2 := lease.Step(r, req, noon)
		if looked != unseen || err != err2 {
			t.Fatalf("%+v, %v\n%+v, %v", looked, err, unseen, err2)
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

// SPEC M4: Step refuses to raise an epoch that is at or above the limit, even though a record with
// an epoch above the limit is not valid.
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

// SPEC M14: a sum of a time and a duration does not overflow, at both ends of the ranges of
// time.Duration and time.Time.
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
	// If a record cannot hold the end of a break, the break ends at the last instant of the year
	// 9999. If a break is requested at or after the last instant of the year 9999, it ends at once.
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

// The time of the authority may have a monotonic reading and any time zone. The times in the record
// are in UTC, without a monotonic reading. SPEC R1.
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
		{"change in the old dialect", lease.Request{Action: lease.ActionChange, ID: ids["A"], Proposed: ids["B"], Version: lease.Version20090919}, lease.ErrVersion, "Request.Action = change: needs version 2012-02-12 or newer, not 2009-09-19"},
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

// FuzzStep makes records and requests from arbitrary bytes. Every step from a valid record passes
// checkStep, and agrees with the reference machine. SPEC M1, M2, R1.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0x01, 0x10, 0x3c, 0x82, 0x10, 0x05, 0x03, 0x21, 0x00})
	f.Add([]byte("acquire, renew, break and write"))
	f.Fuzz(func(t *testing.T, commands []byte) {
		var r lease.Record
		var d reference
		var now int64
		some := []lease.ID{{}, ids["A"], ids["B"], ids["C"]}
		for len(commands) >= 3 {
			c := commands[:3]
			commands = commands[3:]
			req := lease.Request{
				Action: lease.Action(c[0]%7 + 1), ID: some[c[1]&3], Proposed: some[c[1]>>2&3],
				Duration: time.Duration(c[2]>>1) * time.Second,
			}
			if c[1]&16 != 0 {
				req.Period = lease.Grace(time.Duration(c[2]) * time.Second / 2)
			}
			if c[1]&32 != 0 {
				req.Version = lease.Version20110818
			}
			if c[1]&64 != 0 {
				req.Duration = lease.Infinite
			}
			now += int64(c[0]/7) * int64(time.Second)
			if c[1]&128 != 0 {
				now++
			}
			at := noon.Add(time.Duration(now))
			code := d.do(req, now)
			next, err := lease.Step(r, req, at)
			if !isExactly(err, code) || next != d.record(now) {
				t.Fatalf("%+v\n%+v at %v\n got %+v, %v\nwant %+v, %v", r, req, at, next, err, d.record(now), code)
			}
			checkStep(t, r, req, at, next, err)
			r = next
		}
	})
}

// A lease that ends within the last second of the year 9999 stays finite. SPEC M14.
func TestLastSecond(t *testing.T) {
	now := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	r, err := lease.Step(lease.Record{}, lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Duration: 1}, now)
	if want := now.Add(1); err != nil || r.Duration != 1 || !r.Until.Equal(want) {
		t.Errorf("%+v, %v, want an end at %v", r, err, want)
	}
}
