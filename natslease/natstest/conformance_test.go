// Package natstest tests package natslease against a real NATS server. Package natstest is a
// separate module, so that users of natslease do not depend on the server.
package natstest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// suite returns the options of the conformance suite for the stores at an endpoint.
func suite(t *testing.T, endpoint string) *leasetest.Options {
	js := client(t, endpoint)
	kv := bucket(t, js)
	another := func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, endpoint), nil) }
	anotherAuthority := func(t testing.TB, _ lease.Authority) lease.Authority {
		return store(t, client(t, endpoint), nil).Authority()
	}
	corrupt := func(t testing.TB, name string) {
		if _, err := kv.PutString(t.Context(), key(name), "free"); err != nil {
			t.Fatal(err)
		}
	}
	o := &leasetest.Options{
		Unit: 500 * time.Millisecond, // allows stalls of half a second, as on a busy machine
		Can:  leasetest.Everything &^ leasetest.CanTellTime,
		Lacks: []string{"CanTellTime", "CanServeOldVersions", "exact time", "Options.Store.Forget", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put",
			"Options.Store.Connect", "Options.Authority.Connect"},
		Store: leasetest.StoreHooks{
			Reopen:  another,
			Another: another,
			Corrupt: func(t testing.TB, _ lease.Store, name string) { corrupt(t, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Reopen:  anotherAuthority,
			Another: anotherAuthority,
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, name) },
		},
		Lease: leasetest.LeaseHooks{Authority: func(t testing.TB) lease.Authority { return store(t, js, nil).Authority() }},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	return o
}

// The test runs all suites. With -short, it runs the suites that take less than a minute, because
// the behavior of holders depends little on the store.
func TestConformance(t *testing.T) {
	t.Parallel()
	suites := []string{"Store", "Authority", "LoadingAuthority"}
	if !testing.Short() {
		suites = append(suites, "Lease")
	}
	conform(t, shared.url(), suites...)
}

// The suites also pass with the bucket on three servers, and with a client at a server that is not
// the leader.
func TestConformanceOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	suites := []string{"Store"}
	if !testing.Short() {
		suites = append(suites, "Authority", "Lease")
	}
	conform(t, c.members[(c.leader(t)+1)%3].url(), suites...)
}

// conform runs the given suites.
func conform(t *testing.T, endpoint string, suites ...string) {
	o := suite(t, endpoint)
	js := client(t, endpoint)
	newStore := func(t testing.TB) lease.Store { return store(t, js, nil) }
	tests := map[string]func(t *testing.T){
		"Store": func(t *testing.T) { leasetest.TestStore(t, newStore, o) },
		"Authority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return store(t, js, nil).Authority() }, o)
		},
		"LoadingAuthority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return lease.NewAuthority(newStore(t)) }, o)
		},
		"Lease": func(t *testing.T) { leasetest.TestLease(t, newLease, o) },
	}
	for _, what := range suites {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tests[what](t)
		})
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
