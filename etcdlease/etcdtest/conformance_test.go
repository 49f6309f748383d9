// Package etcdtest tests package etcdlease against a real etcd. Package etcdtest is a separate
// module, so that users of etcdlease do not depend on the server.
package etcdtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

func TestConformance(t *testing.T) {
	c := client(t, shared.Client)
	corrupt := func(t testing.TB, name string) {
		if _, err := c.Put(t.Context(), "lease/"+name, "free"); err != nil {
			t.Fatal(err)
		}
	}
	o := &leasetest.Options{
		Unit:  500 * time.Millisecond, // allows stalls of half a second, as on a busy machine
		Can:   leasetest.Everything &^ leasetest.CanTellTime,
		Lacks: []string{"CanTellTime", "CanServeOldVersions", "exact time", "Options.Store.Forget", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
		Store: leasetest.StoreHooks{
			Reopen:  func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, shared.Client), nil) },
			Another: func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, shared.Client), nil) },
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Reopen: func(t testing.TB, _ lease.Authority) lease.Authority {
				return store(t, client(t, shared.Client), nil).Authority()
			},
			Another: func(t testing.TB, _ lease.Authority) lease.Authority {
				return store(t, client(t, shared.Client), nil).Authority()
			},
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, name) },
		},
	}
	connect := func(t testing.TB, transmit leasetest.Transmit) *etcdlease.Store {
		return store(t, client(t, shared.Client, linked(transmit)), nil)
	}
	o.Store.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Store { return connect(t, transmit) }
	o.Authority.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
		return connect(t, transmit).Authority()
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	authority := func(t testing.TB) lease.Authority { return store(t, c, nil).Authority() }
	tests := map[string]func(t *testing.T){
		"Store": func(t *testing.T) {
			leasetest.TestStore(t, func(t testing.TB) lease.Store { return store(t, c, nil) }, o)
		},
		"Authority": func(t *testing.T) { leasetest.TestAuthority(t, authority, o) },
		"LoadingAuthority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return lease.NewAuthority(store(t, c, nil)) }, o)
		},
		"Lease": func(t *testing.T) {
			held := *o
			held.Lease.Authority = authority
			leasetest.TestLease(t, newLease, &held)
		},
	}
	if testing.Short() {
		delete(tests, "LoadingAuthority") // its requests are those of Store
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// linked sends the requests of a client through transmit. A request that is lost fails as one does
// whose connection has broken. An error of the server is an answer.
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

// newLease makes a holder for the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Authority, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}
