package kubelease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// namespace is the namespace of all tests, each of which uses names of its own.
const namespace = "default"

// shared is the server of all tests that do not harm their server.
var shared *kubeserver.Server

func TestMain(m *testing.M) {
	enginetest.Main(m, openStore, func(dir string) (stop func(), err error) {
		if shared, err = kubeserver.Start(context.Background(), dir); err != nil {
			return nil, err
		}
		return shared.Stop, nil
	})
}

// openStore makes the store of a holder that runs in a separate process.
func openStore(address string) (lease.Authority, error) {
	c, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config(address, kubeserver.Admin)))
	if err != nil {
		return nil, err
	}
	s, err := kubelease.New(c, namespace, nil)
	if err != nil {
		return nil, err
	}
	return s.Authority(), nil
}

// newServer starts a server that only one test uses.
func newServer(t testing.TB, flags ...string) *kubeserver.Server {
	t.Helper()
	s, err := kubeserver.Start(t.Context(), t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// config returns the configuration of a user for the server at an address, with a connection of its own.
func config(address, user string) *rest.Config {
	return &rest.Config{Host: "https://" + address, BearerToken: user, QPS: -1,
		// A name of its own keeps client-go from sharing the transport of another client.
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, ServerName: fmt.Sprintf("client-%x.test", rand.Uint64())}}
}

// client makes a client with the rights of an administrator.
func client(t testing.TB, address string, wrap ...wrapper) coordinationclient.CoordinationV1Interface {
	t.Helper()
	return clientset(t, address, kubeserver.Admin, wrap...).CoordinationV1()
}

func clientset(t testing.TB, address, user string, wrap ...wrapper) *kubernetes.Clientset {
	t.Helper()
	c := kubelease.ClientConfig(config(address, user))
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json" // which the tests can read; openStore has the default
	for _, w := range wrap {
		c.Wrap(w)
	}
	http, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	set, err := kubernetes.NewForConfigAndClient(c, http)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func store(t testing.TB, c coordinationclient.CoordinationV1Interface, o *kubelease.Options) *kubelease.Store {
	t.Helper()
	s, err := kubelease.New(c, namespace, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newStore makes a store with its own client, like that of another process.
func newStore(t testing.TB) *kubelease.Store { return store(t, client(t, shared.Address), nil) }

// A trip is a function that serves as an http.RoundTripper.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// A wrapper wraps the transport of a client. The function via makes one from a function that sends a request.
type wrapper = func(next http.RoundTripper) http.RoundTripper

func via(f func(next http.RoundTripper, q *http.Request) (*http.Response, error)) wrapper {
	return func(next http.RoundTripper) http.RoundTripper {
		return trip(func(q *http.Request) (*http.Response, error) { return f(next, q) })
	}
}

func isWatch(q *http.Request) bool { return q.URL.Query().Has("watch") }

// A meter counts the exchanges of a client. A watch is neither a read nor a write.
type meter struct{ n, reads, writes atomic.Int64 }

func (m *meter) wrap(next http.RoundTripper) http.RoundTripper {
	return trip(func(q *http.Request) (*http.Response, error) {
		m.n.Add(1)
		switch {
		case q.Method != http.MethodGet:
			m.writes.Add(1)
		case !isWatch(q):
			m.reads.Add(1)
		}
		return next.RoundTrip(q)
	})
}

// count returns the number of exchanges of f.
func (m *meter) count(f func()) int64 {
	before := m.n.Load()
	f()
	return m.n.Load() - before
}

var (
	idA, idB                        = shorthand.IDA, shorthand.IDB
	acquire, renew, release, breaks = shorthand.Acquire, shorthand.Renew, shorthand.Release, shorthand.Break
	do                              = shorthand.Do
	says, permanent                 = shorthand.Says, shorthand.Permanent
)

var reads = lease.Request{Action: lease.ActionRead}

func change(from, to lease.ID) lease.Request {
	return lease.Request{Action: lease.ActionChange, ID: from, Proposed: to}
}

func second[T any](_ T, err error) error { return err }

// get reads an object without this library.
func get(t testing.TB, c coordinationclient.CoordinationV1Interface, name string) *coordinationv1.Lease {
	t.Helper()
	object, err := c.Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// put updates an object without this library.
func put(t testing.TB, c coordinationclient.CoordinationV1Interface, object *coordinationv1.Lease) *coordinationv1.Lease {
	t.Helper()
	updated, err := c.Leases(namespace).Update(t.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

// remove deletes an object by hand.
func remove(t testing.TB, c coordinationclient.CoordinationV1Interface, name string) {
	t.Helper()
	if err := c.Leases(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// objectOf returns the name of the object of a test, which needs no escaping.
func objectOf(t testing.TB) string {
	name := strings.NewReplacer("/", ".", "_", "-", "#", "-").Replace(strings.ToLower(t.Name()))
	return name[max(0, len(name)-200):]
}
