package kubelease

import (
	"k8s.io/client-go/rest"
)

// ClientConfig returns a copy of the settings of a client, changed so that the client can hold
// leases:
//
//   - No rate limit. By default a client makes 5 requests a second, and delays the others, renewals
//     among them. A limit that is set is kept. The API server has limits of its own.
//   - HTTP/1.1, unless NextProtos is set. With HTTP/2 all requests share a connection. If that dies
//     without a sign, client-go notices after 45 s, and a lease of 30 s is lost. With HTTP/1.1 a
//     request that is given up closes its connection, and the next one makes another. The price is a
//     connection for each lease that is waited for. A program that waits for very many can set
//     NextProtos to "h2", and HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS in its
//     environment to a few seconds.
func ClientConfig(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.QPS == 0 && c.RateLimiter == nil {
		c.QPS = -1
	}
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{"http/1.1"}
	}
	return c
}
