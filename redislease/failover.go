package redislease

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// FailoverOptions returns options for redis.NewFailoverClient. With these options, a request to a sentinel
// fails after one second without an answer, and is not repeated. If a sentinel is frozen, it accepts
// connections but never answers. The client leaves such a sentinel after about three seconds. With the
// defaults of go-redis, this takes about 16 s. A Store cannot shorten this time, because only the client
// sends requests to the sentinels.
//
// The parameter master is the name of the primary in the configuration of the sentinels. Set further options,
// such as Password, before you make the client.
func FailoverOptions(master string, sentinels ...string) *redis.FailoverOptions {
	const limit = time.Second
	return &redis.FailoverOptions{MasterName: master, SentinelAddrs: sentinels,
		DialTimeout: limit, DialerRetries: 1, ReadTimeout: limit, WriteTimeout: limit, MaxRetries: -1, ContextTimeoutEnabled: true}
}
