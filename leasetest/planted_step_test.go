package leasetest

import (
	"time"

	"github.com/fencedlease/lease"
)

// brokenMachines is a suite over a machine with that bug. The bugs that an authority can
// show are those of a plainAuthority.
func buggyMachines(bug string) *suite {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	s := stepSuite(func(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
		next, err := lease.Step(r, req, now)
		switch {
		case bug == "writes ends that cannot be written" && err == nil && req.Action == lease.ActionAcquire:
			next.Until = now.Add(req.Duration)
		case bug == "breaks forever" && next.Until.Equal(last):
			next.Until = time.Time{}
		case bug == "its epoch has no limit" && lease.CodeOf(err) == lease.ErrEpochLimit:
			next.Epoch++
			return next, nil
		case bug == "writes the zone that it was told the time in" && err == nil && !next.Until.IsZero():
			next.Until = next.Until.In(now.Location())
		case bug == "grants before the year 1" && lease.CodeOf(err) == lease.ErrTime:
			return r, nil
		}
		return next, err
	})
	s.options.Seed = 1
	return s
}

var machineBugs = []plantedBug{
	{"writes ends that cannot be written", "M14/sums-saturate"},
	{"breaks forever", "M14/sums-saturate"},
	{"grants before the year 1", "M14/sums-saturate"},
	{"its epoch has no limit", "M4/the-epoch-has-a-limit"},
	{"writes the zone that it was told the time in", "R1/records-are-in-UTC"},
}
