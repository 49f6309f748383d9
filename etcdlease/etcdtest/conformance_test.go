// Package etcdtest holds package etcdlease to a real etcd. It is a module of its own so that
// users of etcdlease do not depend on the server.
package etcdtest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
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
		Unit:   500 * time.Millisecond, // bears stalls of half a second, as a busy machine has them
		Can:    leasetest.Everything &^ leasetest.CanTellTime,
		Reopen: func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, shared.Client), nil) },
		ReopenAuthority: func(t testing.TB, _ lease.Authority) lease.Authority {
			return store(t, client(t, shared.Client), nil).Authority()
		},
		Another: func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, shared.Client), nil) },
		AnotherAuthority: func(t testing.TB, _ lease.Authority) lease.Authority {
			return store(t, client(t, shared.Client), nil).Authority()
		},
		Corrupt:          func(t testing.TB, _ lease.Store, name string) { corrupt(t, name) },
		CorruptAuthority: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, name) },
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // of which every lease lasts a minute
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
			held.Authority = authority
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

// newLease makes a holder of the suite.
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
