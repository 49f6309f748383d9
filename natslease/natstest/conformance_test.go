// Package natstest holds package natslease to a real NATS server. It is a module of its own so that
// users of natslease do not depend on the server.
package natstest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// suite is what the conformance suite has to know of the stores at an endpoint. With -short, all of
// it takes less than a minute.
func suite(t *testing.T, endpoint string) *leasetest.Options {
	another := func(t testing.TB, _ lease.Store) lease.Store { return store(t, client(t, endpoint), nil) }
	js := client(t, endpoint)
	kv := bucket(t, js)
	o := &leasetest.Options{
		Unit:    400 * time.Millisecond, // bears stalls of half a second, as a busy machine has them
		Lacks:   leasetest.OwnClock | leasetest.Forgetting,
		Reopen:  another,
		Another: another,
		Corrupt: func(t testing.TB, _ lease.Store, name string) {
			if _, err := kv.PutString(t.Context(), key(name), "free"); err != nil {
				t.Fatal(err)
			}
		},
		Authority: func(t testing.TB) lease.Authority { return store(t, js, nil).Authority() },
	}
	if testing.Short() {
		o.Unit, o.Slack = 175*time.Millisecond, 400*time.Millisecond
		o.Lacks |= leasetest.Dialects // in the old one every lease lasts a minute
	}
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, shared.url(), "Store", "Authority", "LoadingAuthority", "Lease")
}

// The same with the bucket on three servers, and a client at one that does not lead.
func TestConformanceOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	suites := []string{"Store"}
	if !testing.Short() {
		suites = append(suites, "Authority", "Lease")
	}
	conform(t, c.members[(c.leader(t)+1)%3].url(), suites...)
}

// conform runs some of the suites.
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

// newLease makes a holder of the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Over, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
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
