package lease_test

import (
	"math"
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
