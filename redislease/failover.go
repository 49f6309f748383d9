package redislease

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// FailoverOptions returns options for redis.NewFailoverClient. The options limit each request to a sentinel
// to one second, and turn off repetitions. The client therefore needs about three seconds to give up a
// frozen sentinel, which accepts connections but never answers. With the defaults of go-redis, that takes
// about 16 s. No Store can shorten this time, because only the client sends requests to the sentinels.
//
// The master is the name of the primary in the configuration of the sentinels. Further options, such as
// Password, can be set before the client is made.
func FailoverOptions(master string, sentinels ...string) *redis.FailoverOptions {
	const limit = time.Second
	return &redis.FailoverOptions{MasterName: master, SentinelAddrs: sentinels,
		DialTimeout: limit, DialerRetries: 1, ReadTimeout: limit, WriteTimeout: limit, MaxRetries: -1, ContextTimeoutEnabled: true}
}
