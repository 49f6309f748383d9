//go:build !race

package redislease_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/redislease"
)

// bareRenewal is a script that only compares and swaps: it compares the version, adds the duration
// to the time of the server, and extends the life of the key.
var bareRenewal = redis.NewScript(`
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return redis.error_reply('ERR conflict') end
redis.call('HSET', KEYS[1], 'until', redis.call('TIME')[1] + ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('HINCRBY', KEYS[1], 'version', 1)`)

// TestRenewalCost logs how long a renewal and the bare script take. It measures the two in both orders.
func TestRenewalCost(t *testing.T) {
	for what, server := range map[string]*redisserver.Server{"in memory": shared, "appendfsync always": ownServer(t, redisserver.Durable...)} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			c := client(t, server.Addr(), func(o *redis.Options) { o.MaxRetries = -1 })
			a := store(t, c, &redislease.Options{Prefix: prefix(t)}).Authority()
			do(t, a, "x", acquire(idA, time.Hour), 0)
			key, version := prefix(t)+":bare", 1
			err := c.HSet(ctx, key, "version", version).Err()
			if err != nil {
				t.Fatal(err)
			}
			our, their := shorthand.Compare(shorthand.Rounds(2000), func() {
				if _, err := a.Do(ctx, "x", renew(idA)); err != nil {
					t.Error(err)
				}
			}, func() {
				if version, err = bareRenewal.Run(ctx, c, []string{key}, version, 3600, 3600_000).Int(); err != nil {
					t.Error(err)
				}
			})
			t.Logf("a renewal takes %v, the bare script %v: %.2f times that", our, their, float64(our)/float64(their))
		})
	}
}
