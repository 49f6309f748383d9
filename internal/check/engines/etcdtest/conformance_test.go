// Package etcdtest tests package etcdlease against a real etcd. It is a separate module, so that users
// of etcdlease do not depend on the server.
package etcdtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

func TestConformance(t *testing.T) {
	c := client(t, shared.Client)
	suites := []string{"Store", "Authority", "Lease", "LoadingAuthority"}
	if testing.Short() {
		suites = suites[:3] // the requests of LoadingAuthority are those of Store
	}
	enginetest.Suites{
		Options: enginetest.Observed(500 * time.Millisecond), // allows stalls of half a second, as on a busy machine
		Open:    func(t testing.TB) enginetest.Store { return store(t, c, nil) },
		Another: func(t testing.TB) enginetest.Store { return store(t, client(t, shared.Client), nil) },
		Corrupt: func(t testing.TB, name string) {
			if _, err := c.Put(t.Context(), "lease/"+name, "free"); err != nil {
				t.Fatal(err)
			}
		},
		Connect: overLink,
	}.Run(t, suites...)
}

// overLink opens a store whose requests go through transmit.
func overLink(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
	return store(t, client(t, shared.Client, linked(transmit)), nil)
}

// linked sends the requests of a client through transmit. A lost request fails like one whose
// connection has broken. An error of the server is an answer.
func linked(transmit leasetest.Transmit) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) (err error) {
		lost := transmit(ctx, func() error {
			err = invoke(ctx, method, req, reply, cc, o...)
			return nil
		})
		if lost != nil && ctx.Err() == nil {
			return status.Error(codes.Unavailable, lost.Error())
		}
		return cmp.Or(lost, err)
	})
}
