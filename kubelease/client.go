package kubelease

import (
	"k8s.io/client-go/rest"
)

// ClientConfig returns a copy of c that is adapted for holding leases, with two changes:
//
//   - If c sets no rate limit, the client gets none. By default, client-go limits a client to 5 requests a
//     second and delays all requests above this rate, including renewals. The API server has its own limits.
//   - If c.NextProtos is not set, the client uses HTTP/1.1. With HTTP/2 all requests share one
//     connection. If it dies silently, client-go notices only after 45 s, and a lease of 30 s is lost
//     by then. With HTTP/1.1 a canceled request closes its connection, and the next one opens another,
//     but a program needs one connection for each lease for which it waits. If it waits for very many,
//     set NextProtos to "h2", and the environment variables HTTP2_READ_IDLE_TIMEOUT_SECONDS and
//     HTTP2_PING_TIMEOUT_SECONDS to a few seconds.
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
