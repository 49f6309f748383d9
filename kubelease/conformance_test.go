package kubelease_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

func TestConformance(t *testing.T) {
	c := client(t, shared.Address)
	o := suiteOptions(func(t testing.TB) *kubelease.Store { return newStore(t) }, func(t testing.TB, name string) {
		object, err := kubelease.ObjectName(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Leases(namespace).Get(t.Context(), object, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found.Annotations = map[string]string{kubelease.Annotation: "free"}
		put(t, c, found)
	})
	connect := func(t testing.TB, transmit leasetest.Transmit) *kubelease.Store {
		return store(t, client(t, shared.Address, func(next http.RoundTripper) http.RoundTripper {
			return linked.Transport(transmit, next)
		}), nil)
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
		// An authority sends the same requests as Store and Lease.
		delete(tests, "LoadingAuthority")
		delete(tests, "Authority")
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// suiteOptions returns the options of the suite. The function open makes a store like that of
// another process, and the function corrupt damages a record.
func suiteOptions(open func(testing.TB) *kubelease.Store, corrupt func(t testing.TB, name string)) *leasetest.Options {
	return &leasetest.Options{
		Unit:  600 * time.Millisecond, // allows stalls of a second, as on a busy machine
		Can:   leasetest.Everything &^ leasetest.CanTellTime,
		Lacks: []string{"CanTellTime", "CanServeOldVersions", "exact time", "Options.Store.Forget", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
		Store: leasetest.StoreHooks{
			Reopen:  func(t testing.TB, _ lease.Store) lease.Store { return open(t) },
			Another: func(t testing.TB, _ lease.Store) lease.Store { return open(t) },
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return open(t).Authority() },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority { return open(t).Authority() },
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, name) },
		},
	}
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
