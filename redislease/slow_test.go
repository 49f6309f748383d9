package redislease_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
)

// A caller with a short deadline, such as a health check, does no harm to the others if the server is only far
// away, even after the server has stood still for a moment.
func TestShortDeadlineOverASlowNetwork(t *testing.T) {
	for _, c := range []struct{ each, deadline, still time.Duration }{
		{60 * time.Millisecond, 30 * time.Millisecond, 0}, // of each direction: no check can succeed
		{65 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			s := ownServer(t)
			p := proxy(t, s.Addr())
			a := store(t, client(t, p.Addr()), nil).Authority()
			do(t, a, "leader", acquire(idA, time.Hour), 0)
			p.Slow(c.each)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var succeeded atomic.Int32
			go func() {
				for ctx.Err() == nil {
					go func() {
						ctx, cancel := context.WithTimeout(ctx, c.deadline)
						defer cancel()
						if _, err := lease.Inspect(ctx, a, "other"); err == nil {
							succeeded.Add(1)
						}
					}()
					time.Sleep(150 * time.Millisecond) // a real engine
				}
			}()
			time.Sleep(time.Second)
			if c.still > 0 {
				if err := s.Pause(c.still); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			for range 5 {
				do(t, a, "leader", renew(idA), 0)
			}
			for succeeded.Store(0); c.still > 0 && succeeded.Load() < 5; time.Sleep(20 * time.Millisecond) {
				if ctx.Err() != nil {
					t.Fatalf("%d checks succeed after the server has stood still", succeeded.Load())
				}
			}
		})
	}
}

// A ReplicaTimeout counts even if it is longer than the ReadTimeout of the client.
func TestReplicaTimeoutIsLongerThanTheReadTimeout(t *testing.T) {
	p := newPair(t)
	c := client(t, p.primary.Addr(), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	a := store(t, c, &redislease.Options{Replicas: 1, ReplicaTimeout: 10 * time.Second}).Authority()
	do(t, a, "x", acquire(idA, time.Hour), 0)
	p.link.Slow(300 * time.Millisecond)
	do(t, a, "x", renew(idA), 0)
}
