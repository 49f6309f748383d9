package kubelease_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// An API server is no longer the right one, but keeps its connections, and only new ones reach another.
// Once a request has failed, the next one reaches the other within one RequestTimeout, although the client
// has many more connections to the first. A watch ends, so that its user watches at the other, too.
func TestLeavesAServer(t *testing.T) {
	t.Parallel()
	t.Run("Silent", func(t *testing.T) {
		t.Parallel()
		leavesAServer(t, func(p *enginetest.Proxy, _ *atomic.Bool) { p.Silence() })
	})
	t.Run("SilentBehindAnotherTransport", func(t *testing.T) {
		t.Parallel()
		leavesAServer(t, func(p *enginetest.Proxy, _ *atomic.Bool) { p.Silence() }, new(meter).wrap)
	})
	t.Run("Unavailable", func(t *testing.T) {
		t.Parallel()
		leavesAServer(t, func(_ *enginetest.Proxy, unavailable *atomic.Bool) { unavailable.Store(true) })
	})
}

func leavesAServer(t *testing.T, harm func(*enginetest.Proxy, *atomic.Bool), wrap ...func(http.RoundTripper) http.RoundTripper) {
	const requestTimeout, connections = 4 * time.Second, 10
	var unavailable atomic.Bool
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: shared.Address})
	pass.Transport, pass.FlushInterval = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, -1
	wrong := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if unavailable.Load() {
			http.Error(w, "etcdserver: no leader", http.StatusServiceUnavailable)
			return
		}
		pass.ServeHTTP(w, q)
	}))
	wrong.EnableHTTP2 = true
	wrong.StartTLS()
	t.Cleanup(func() { wrong.CloseClientConnections(); wrong.Close() })
	p := enginetest.NewProxy(t, wrong.Listener.Addr().String(), nil)
	s := store(t, clientset(t, p.Addr(), kubeserver.Admin, wrap...).CoordinationV1(), nil)
	a, name := s.Authority(), objectOf(t)
	do(t, a, name, acquire(idA, time.Minute), 0)
	signals, err := s.Watch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() { _, _ = s.Load(t.Context(), fmt.Sprint(name, i)) })
	}
	all.Wait()
	p.Target(shared.Address)
	harm(p, &unavailable)
	try := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
		defer cancel()
		_, err := a.Do(ctx, name, renew(idA))
		return err
	}
	if try() == nil {
		t.Fatal("renewed by the wrong server")
	}
	began := time.Now()
	if err := try(); err != nil {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	t.Logf("renewed %v after the first failure", time.Since(began).Round(time.Millisecond))
	if !shorthand.Within(signals, false) {
		t.Error("the watch stays at the wrong server")
	}
}
