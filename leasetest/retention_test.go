package leasetest

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// In real time, no rule sleeps for long because a store keeps its records for long.
func TestRetentionDelaysNoRule(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, time.Hour} {
		for _, r := range storeRules {
			if r.needs&hasForget == 0 || r.needs&exactTime != 0 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				var slept atomic.Int64
				s := plainStores("")
				o := &s.options
				o.Bubble, o.Unit, o.Slack = false, 250*time.Millisecond, 250*time.Millisecond
				o.Sleep = func(d time.Duration) {
					slept.Add(int64(d))
					time.Sleep(d)
				}
				forget := o.Store.Forget
				o.Store.Forget = func(t testing.TB, s lease.Store) time.Duration {
					_ = forget(t, s)
					return after
				}
				rec := &recorder{TB: t}
				rec.run(func() { s.check(rec, r) })
				if len(rec.messages) > 0 {
					t.Error(rec.messages[0])
				}
				if took := time.Duration(slept.Load()); took > 6*time.Second {
					t.Errorf("%s sleeps for %v if records are kept for %v", r.name, took, after)
				}
			})
		}
	}
}
