package etcdlease

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// ClientConfig returns the settings of a client that holds leases. Change it as you need, but keep
// what it sets:
//
//   - Keepalive. Without it a connection that dies silently, as one through a firewall that forgets
//     it, is never found out, and the client never recovers. With it the client gives up a connection
//     on which nothing is acknowledged for DialKeepAliveTimeout. Pings go out every 10 s, which is
//     the least that gRPC allows.
//   - A short back-off. After a connection broke, gRPC waits a second before it tries again, and
//     then longer and longer, up to two minutes. A lease of 15 s does not bear that.
func ClientConfig(endpoints ...string) clientv3.Config {
	return clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		})},
	}
}
