// Package natstest tests package natslease against a real NATS server. It is a separate module, so that
// users of natslease do not depend on the server.
package natstest

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// The test runs all suites, and with -short those that take less than a minute, because the behavior of
// holders depends little on the store.
func TestConformance(t *testing.T) {
	t.Parallel()
	suites := []string{"Store", "Authority", "LoadingAuthority"}
	if !testing.Short() {
		suites = append(suites, "Lease")
	}
	conform(t, shared.url(), 500*time.Millisecond, suites...) // allows stalls of half a second, as on a busy machine
}

// The suites also pass with the bucket on three servers, and with a client at a server that is not the
// leader. The test runs alone, because three servers in this process stall for seconds when the rules
// of several suites begin at once.
func TestConformanceOfACluster(t *testing.T) {
	c := newCluster(t)
	suites := []string{"Store"}
	if !testing.Short() {
		suites = append(suites, "Authority", "Lease")
	}
	conform(t, c.members[(c.leader(t)+1)%3].url(), time.Second, suites...)
}

func conform(t *testing.T, endpoint string, unit time.Duration, suites ...string) {
	js := client(t, endpoint)
	kv := bucket(t, js)
	o := enginetest.Observed(unit)
	o.Lacks = append(o.Lacks, "Options.Store.Connect", "Options.Authority.Connect")
	enginetest.Suites{
		Options: o,
		Open:    func(t testing.TB) enginetest.Store { return store(t, js, nil) },
		Another: func(t testing.TB) enginetest.Store { return store(t, client(t, endpoint), nil) },
		Corrupt: func(t testing.TB, name string) {
			if _, err := kv.PutString(t.Context(), key(name), "free"); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t, suites...)
}
