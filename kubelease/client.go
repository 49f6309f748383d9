package kubelease

import (
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// ClientConfig returns a copy of c that is adapted for holding leases. ClientConfig changes three things:
//
//   - If c sets no rate limit, the client has none. By default, client-go limits a client to 5 requests a
//     second and delays all requests above this rate, including renewals. The API server has its own limits.
//   - The client does not share its connections with other clients of the process. With HTTP/2, which is the
//     default, it needs only one connection, unless about a hundred requests, such as watches, are open at
//     the same time.
//   - A Store can close the connection if the API server does not answer a request in time, and has answered
//     no other request meanwhile. With HTTP/2, client-go itself closes a dead connection only after 45 s,
//     when a lease of 30 s is already lost. The client never opens many connections at once.
func ClientConfig(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.QPS == 0 && c.RateLimiter == nil {
		c.QPS = -1
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	own := newConnector(c.Dial)
	c.Dial = own.DialContext // client-go does not share a transport that has a Dial
	c.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper { return &connected{next, own} }, c.WrapTransport)
	return c
}

const (
	dialTimeout = 3 * time.Second // 30 s in client-go
	keepAlive   = 10 * time.Second
)
