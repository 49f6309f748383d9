package kubelease_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// An API server is no longer the right one, but keeps its connections, and only new ones reach another.
// Once a request has failed, the next one reaches the other within one RequestTimeout, although the client
// has many more connections to the first. A watch ends, so that its user watches at the other, too.
func TestLeavesAServer(t *testing.T) {
	t.Parallel()
	for what, silent := range map[string]bool{"Silent": true, "SilentBehindAnotherTransport": true, "Unavailable": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
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
			var wrap []wrapper
			if what == "SilentBehindAnotherTransport" {
				wrap = append(wrap, new(meter).wrap)
			}
			s := store(t, client(t, p.Addr(), wrap...), nil)
			a, name := s.Authority(), objectOf(t)
			do(t, a, name, acquire(idA, time.Minute), 0)
			signals, err := s.Watch(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			shorthand.Together(10, 10, func(i int) { _, _ = s.Load(t.Context(), fmt.Sprint(name, i)) })
			p.Target(shared.Address)
			if silent {
				p.Silence()
			}
			unavailable.Store(!silent)
			try := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
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
		})
	}
}
