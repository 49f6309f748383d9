package redislease_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// With -short, the test leaves out the suite of leases, because a test of that suite takes 300 units.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := client(t, shared.Addr(), func(o *redis.Options) { o.PoolSize = 64 }) // enough for all tests at once
	// Each test of the suite has its own prefix, and therefore its own floors.
	open := func(t testing.TB) *redislease.Store {
		s := store(t, c, &redislease.Options{Prefix: prefix(t), Keep: keep(t)})
		if _, err := s.Load(t.Context(), "connect, before time counts"); err != nil {
			t.Error(err)
		}
		return s
	}
	suites := []string{"Store", "Authority", "Lease"}
	// The unit allows stalls of half a second, as on a busy machine, because a Session waits that long
	// for an answer.
	unit := 400 * time.Millisecond
	if testing.Short() {
		suites, unit = suites[:2], 250*time.Millisecond
	}
	enginetest.Suites{
		Options: leasetest.Options{
			Unit:  unit,
			Slack: 400 * time.Millisecond,
			Lacks: []string{"Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
		},
		Open:   func(t testing.TB) enginetest.Store { return open(t) },
		Forget: forget,
		Corrupt: func(t testing.TB, name string) {
			// An authority that remembers the record notices the change by the version.
			if err := c.HSet(t.Context(), open(t).Key(name), "id", "", "version", "edited").Err(); err != nil {
				t.Fatal(err)
			}
		},
		Connect: func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
			s := open(t)
			s.AddHook(linked(transmit))
			return s
		},
	}.Run(t, suites...)
}

// keeps has the values of Options.Keep for two tests of the suite: one waits for half of that time, the
// other looks at names in other buckets after a record has expired. All other tests use the default.
var keeps = map[string]time.Duration{
	"S9/what-may-be-renewed-is-kept-for-the-stated-time": 20 * time.Second,
	"S3/each-forgotten-state-raises-the-epoch":           2 * time.Second,
}

// keep returns the value of Options.Keep for a test of the suite.
func keep(t testing.TB) time.Duration {
	for rule, d := range keeps {
		if strings.HasSuffix(t.Name(), rule) {
			return d
		}
	}
	return time.Hour
}

// forget makes the server forget all released records. If they expire soon anyway, it waits for that.
func forget(t testing.TB, s lease.Store) (after time.Duration) {
	after = keep(t)
	c := client(t, shared.Addr())
	for e, err := range s.(*redislease.Store).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if soon := after < 5*time.Second; e.Record.State != lease.Available && (!soon || e.Record.State.Locked()) {
			continue
		}
		key := s.(*redislease.Store).Key(e.Name)
		if after > 5*time.Second {
			c.PExpire(t.Context(), key, time.Millisecond)
		}
		for c.Exists(t.Context(), key).Val() != 0 {
			time.Sleep(10 * time.Millisecond) // a real engine
		}
	}
	return after
}

// linked sends the commands of a client through transmit. An error of the server is an answer.
func linked(transmit leasetest.Transmit) redis.Hook {
	return hook(func(ctx context.Context, all []redis.Cmder, next redis.ProcessPipelineHook) (err error) {
		lost := transmit(ctx, func() error {
			err = next(ctx, all)
			return nil
		})
		if lost == nil {
			return err
		}
		for _, c := range all {
			c.SetErr(lost)
		}
		return lost
	})
}
