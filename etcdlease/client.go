package etcdlease

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// ClientConfig returns a configuration for the [clientv3.Client] of a Store. If you change the configuration,
// keep these settings:
//
//   - Keepalive. Without it, a client never recovers from a connection that dies silently, for example in a
//     firewall. With it, the client sends a ping if it has received nothing for 10 s, the shortest interval
//     that gRPC allows, but only during a request or a watch. If the server acknowledges nothing for
//     DialKeepAliveTimeout, the client closes the connection.
//   - A short back-off. By default, gRPC waits for a second before it replaces a broken connection, and
//     longer after every new failure, up to two minutes. This is too long for a lease of 15 s.
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
