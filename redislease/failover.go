package redislease

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// FailoverOptions returns options for redis.NewFailoverClient. The options limit each request to a sentinel
// to one second, without retries. If a sentinel is frozen, it accepts connections but never answers. With
// these options, the client leaves such a sentinel after about three seconds. With the defaults of go-redis,
// this takes about 16 s. A Store cannot shorten this time, because only the client sends requests to the
// sentinels.
//
// The parameter master is the name of the primary in the configuration of the sentinels. Set further options,
// such as Password, before you make the client.
func FailoverOptions(master string, sentinels ...string) *redis.FailoverOptions {
	const limit = time.Second
	return &redis.FailoverOptions{MasterName: master, SentinelAddrs: sentinels,
		DialTimeout: limit, DialerRetries: 1, ReadTimeout: limit, WriteTimeout: limit, MaxRetries: -1, ContextTimeoutEnabled: true}
}
