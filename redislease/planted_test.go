package redislease_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/redislease"
)

// If a script does not compare a value that it must compare, the histories find this bug.
func TestHistoriesFindPlantedBugs(t *testing.T) {
	for what, bug := range map[string]struct{ part, is string }{
		"a swap does not compare the version":         {"same = version == ARGV[1]", "same = true"},
		"a swap creates what is there":                {"same = version == ARGV[1]", "same = version == ARGV[1] or string.match(ARGV[1], '^absent') ~= nil"},
		"a swap does not compare the end":             {" or ARGV[3] ~= '' and now >= ARGV[3]", ""},
		"a renewal does not compare the lease":        {"if same[1] ~= 'leased' or same[2] ~= ARGV[8] or same[3] ~= ARGV[9] or same[4] ~= ARGV[10] or same[5] ~= ARGV[11] then return false end", ""},
		"a renewal leaves the version":                {"'version', version, 'time', now, 'until'", "'time', now, 'until'"},
		"a renewal counts its until from a minute on": {"stamp(seconds + ARGV[3] + carry", "stamp(seconds + 60 + ARGV[3] + carry"},
		"an acquire lowers the epoch of the record":   {"redis.call('HSET', KEYS[1], 'version', swapped, 'time', now, unpack(ARGV, 12))", "redis.call('HSET', KEYS[1], 'version', swapped, 'time', now, unpack(ARGV, 12)) redis.call('HSET', KEYS[1], 'epoch', '00000000000000000001')"},
	} {
		t.Run(what, func(t *testing.T) {
			mend, planted := redislease.Plant(bug.part, bug.is)
			defer mend()
			if !planted {
				t.Fatalf("no script has %q", bug.part)
			}
			var all []lease.Authority
			for range 2 {
				s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
				all = append(all, lease.NewAuthority(s), s.Authority())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var found atomic.Int64
			shorthand.Together(8, 1_000_000, func(i int) {
				if found.Load() > 0 || ctx.Err() != nil {
					return
				}
				w := linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute, Seed: uint64(i), Name: fmt.Sprint("x", i)}
				if _, err := linearize.Run(ctx, all, &inServerTime, &w); err != nil {
					found.Store(int64(i) + 1)
				}
			})
			if t.Logf("found in history %d", found.Load()); found.Load() == 0 {
				t.Error("not found in a minute")
			}
		})
	}
}
