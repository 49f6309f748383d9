package kubelease_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

func TestConformance(t *testing.T) {
	c := client(t, shared.Address)
	suites := []string{"Store", "Lease", "Authority", "LoadingAuthority"}
	if testing.Short() {
		suites = suites[:2] // an authority sends the same requests as Store and Lease
	}
	enginetest.Suites{
		Options: enginetest.Observed(600 * time.Millisecond), // allows stalls of a second, as on a busy machine
		Open:    func(t testing.TB) enginetest.Store { return store(t, c, nil) },
		Another: func(t testing.TB) enginetest.Store { return newStore(t) },
		Corrupt: func(t testing.TB, name string) {
			object, err := kubelease.ObjectName(name)
			if err != nil {
				t.Fatal(err)
			}
			found := get(t, c, object)
			found.Annotations = map[string]string{kubelease.Annotation: "free"}
			put(t, c, found)
		},
		Connect: overLink,
	}.Run(t, suites...)
}

// overLink opens a store whose requests go through transmit. Its reads must come from etcd, and never from the
// cache of the API server.
func overLink(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
	return store(t, client(t, shared.Address, via(func(next http.RoundTripper, q *http.Request) (*http.Response, error) {
		if version := q.URL.Query()["resourceVersion"]; version != nil && (version[0] == "0" || !isWatch(q)) {
			t.Errorf("%s may be answered from a cache", q.URL)
		}
		return linked.Transport(transmit, next).RoundTrip(q)
	})), nil)
}
