// Package etcdtest holds package etcdlease to a real etcd. It is a module of its own so that
// users of etcdlease do not depend on the server.
package etcdtest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

func TestConformance(t *testing.T) {
	o := &leasetest.Options{
		Unit: 150 * time.Millisecond, Lacks: leasetest.OwnClock | leasetest.Forgetting,
		Reopen: func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, shared.Client), nil) },
	}
	c := client(t, shared.Client)
	t.Run("Store", func(t *testing.T) {
		leasetest.TestStore(t, func(t testing.TB) lease.Store { return store(t, c, nil) }, o)
	})
	t.Run("Authority", func(t *testing.T) {
		leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return store(t, c, nil).Authority() }, o)
	})
	t.Run("LoadingAuthority", func(t *testing.T) {
		leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return lease.NewAuthority(store(t, c, nil)) }, o)
	})
}
