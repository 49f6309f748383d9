package lease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// same has the signature of Step, but decides nothing. Its benchmark shows the cost of the call itself.
//
//go:noinline
func same(r lease.Record, _ lease.Request, _ time.Time) (lease.Record, error) { return r, nil }

// BenchmarkStep measures the cost of one decision, granted and refused, for every action. The sub-benchmark
// "limit" measures the cost of passing the arguments and returning the record.
func BenchmarkStep(b *testing.B) {
	a, other := lease.ID{1}, lease.ID{2}
	now := time.Date(2012, 1, 26, 23, 30, 18, 0, time.UTC)
	free := lease.Record{Epoch: 6}
	held := lease.Record{State: lease.Leased, ID: a, Owner: "worker-1", Duration: time.Minute, Until: now.Add(time.Minute), Epoch: 7}
	b.Run("limit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			same(held, lease.Request{Action: lease.ActionRead}, now)
		}
	})
	for _, c := range []struct {
		name string
		r    lease.Record
		req  lease.Request
	}{
		{"acquire/granted", free, lease.Request{Action: lease.ActionAcquire, Proposed: a, Owner: "worker-1", Duration: time.Minute}},
		{"acquire/refused", held, lease.Request{Action: lease.ActionAcquire, Proposed: other, Owner: "worker-1", Duration: time.Minute}},
		{"renew/granted", held, lease.Request{Action: lease.ActionRenew, ID: a}},
		{"renew/refused", held, lease.Request{Action: lease.ActionRenew, ID: other}},
		{"change/granted", held, lease.Request{Action: lease.ActionChange, ID: a, Proposed: other}},
		{"change/refused", free, lease.Request{Action: lease.ActionChange, ID: a, Proposed: other}},
		{"release/granted", held, lease.Request{Action: lease.ActionRelease, ID: a}},
		{"release/refused", held, lease.Request{Action: lease.ActionRelease, ID: other}},
		{"break/granted", held, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Second)}},
		{"break/refused", free, lease.Request{Action: lease.ActionBreak}},
		{"read/granted", held, lease.Request{Action: lease.ActionRead}},
		{"read/refused", held, lease.Request{Action: lease.ActionRead, ID: other}},
		{"write/granted", held, lease.Request{Action: lease.ActionWrite, ID: a}},
		{"write/refused", held, lease.Request{Action: lease.ActionWrite}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease.Step(c.r, c.req, now)
			}
		})
	}
}
