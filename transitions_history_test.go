package lease_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
)

// requests draws any request, even a request with a missing or wrong argument.
func requests() *rapid.Generator[lease.Request] {
	some := rapid.SampledFrom([]lease.ID{ids["A"], ids["B"], ids["C"], ids["-"]})
	return rapid.Custom(func(t *rapid.T) lease.Request {
		req := lease.Request{
			Action:   rapid.SampledFrom([]lease.Action{lease.ActionAcquire, lease.ActionAcquire, lease.ActionRenew, lease.ActionChange, lease.ActionRelease, lease.ActionBreak, lease.ActionRead, lease.ActionWrite}).Draw(t, "action"),
			ID:       some.Draw(t, "id"),
			Proposed: some.Draw(t, "proposed"),
			Owner:    rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "owner"),
			Duration: durations().Draw(t, "duration"),
			Version:  rapid.SampledFrom([]lease.Version{0, 0, lease.Version20110818}).Draw(t, "version"),
		}
		if rapid.Bool().Draw(t, "with a period") {
			finite := durations().Filter(func(d time.Duration) bool { return d != lease.Infinite })
			req.Period = lease.Grace(finite.Draw(t, "period"))
		}
		return req
	})
}

func durations() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{lease.Infinite, 15 * time.Second, time.Minute, 1, 0, -1}),
		rapid.Map(rapid.Int64Range(1, int64(time.Minute)), func(n int64) time.Duration { return time.Duration(n) }),
	)
}

// Over long histories, Step and the reference machine have equal records and return equal results.
// A call of At between two steps does not change the outcome. SPEC M1, M4, M6, M16.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			r       lease.Record
			d       reference
			now     int64
			highest uint64
		)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "time") {
			case 0: // the time stands still
			case 1: // the time moves to the end of the lease, or close to the end
				if !r.Until.IsZero() {
					now = max(now, int64(r.Until.Sub(noon))+rapid.Int64Range(-1, 1).Draw(t, "beside"))
				}
			default:
				now += rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pass")
			}
			at := noon.Add(time.Duration(now))
			if rapid.Bool().Draw(t, "look") {
				r = r.At(at)
			}
			req := requests().Draw(t, "request")
			code := d.do(req, now)
			next, err := lease.Step(r, req, at)
			if !isExactly(err, code) || next != d.record(now) {
				t.Fatalf("%+v\n%+v at %v\n got %+v, %v\nwant %+v, %v", r, req, at, next, err, d.record(now), code)
			}
			checkStep(t, r, req, at, next, err)
			if next.Epoch < highest {
				t.Fatalf("the epoch fell from %d to %d", highest, next.Epoch)
			}
			r, highest = next, next.Epoch
		}
	})
}
