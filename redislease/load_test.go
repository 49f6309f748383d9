package redislease_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A process holds 10,000 leases of 10 s through one Store, at a server that syncs every write to its disk.
// It loses none of them. With -short, it holds 500.
func TestThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 10_000, Hold: 25 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 500, Hold: 12 * time.Second}
	}
	l.Run(t, store(t, client(t, ownServer(t, redisserver.Durable...).Addr()), nil))
}

// slowServer lets a server carry out the given number of scripts a second.
func slowServer(rate time.Duration) redis.Hook {
	var mu sync.Mutex
	var free time.Time // when the server has carried out all scripts that were sent
	return hook(func(ctx context.Context, all []redis.Cmder, next redis.ProcessPipelineHook) error {
		mu.Lock()
		if now := time.Now(); free.Before(now) {
			free = now
		}
		for _, c := range all {
			if c.Name() == "evalsha" {
				free = free.Add(time.Second / rate)
			}
		}
		wait := time.Until(free)
		mu.Unlock()
		time.Sleep(wait) // a real engine
		return next(ctx, all)
	})
}

// A process that asks for three times as many leases as its server can renew holds nearly as many as one that asks for
// just enough, and loses none. The other leases are refused.
func TestThousandLeasesMoreThanFit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than two minutes")
	}
	const rate, fit = 1000, 1500
	var held [2]int
	for i, leases := range []int{fit, 3 * fit} {
		s := store(t, client(t, ownServer(t).Addr()), nil)
		s.AddHook(slowServer(rate))
		enginetest.Load{Leases: leases, Duration: 6 * time.Second, Hold: 12 * time.Second, Refusals: true, Held: func() {
			for e, err := range s.List(t.Context(), "many/") {
				if err != nil {
					t.Fatal(err)
				}
				if e.Record.State == lease.Leased {
					held[i]++
				}
			}
		}}.Run(t, s)
	}
	if held[0] < fit*9/10 || held[1] < held[0]*8/10 {
		t.Errorf("%d leases are held of %d, and %d of %d", held[0], fit, held[1], 3*fit)
	}
}
