package azuretest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A server is no longer the right one, but keeps its connections, and only new ones reach another. With
// NewTransport, the first request after one that failed reaches the other, although the client has many
// more connections to the first.
func TestLeavesAServer(t *testing.T) {
	for what, harmed := range map[string]http.HandlerFunc{
		"silent":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"unavailable": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) },
	} {
		t.Run(what, func(t *testing.T) {
			const connections = 10
			d := newDouble(t, nil)
			var wrong atomic.Bool
			first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if wrong.Load() {
					harmed(w, r)
					return
				}
				d.ServeHTTP(w, r)
			}))
			second := httptest.NewServer(d)
			p := enginetest.NewProxy(t, first.Listener.Addr().String(), nil)
			t.Cleanup(func() { p.Cut(); first.Close(); second.Close() })
			way := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
			t.Cleanup(way.CloseIdleConnections)
			leases := open(t, client(t, "http://"+p.Addr()+"/"+blobtest.DefaultAccount+"/"+box, azlease.NewTransport(way)))
			shorthand.Together(connections, connections, func(i int) { do(t, leases, fmt.Sprint("job", i), acquire(idA, time.Minute), 0) })
			wrong.Store(true)
			p.Target(second.Listener.Addr().String())
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := leases.Do(ctx, "job0", renew(idA)); err == nil {
				t.Fatal("renewed by the wrong server")
			}
			do(t, leases, "job0", renew(idA), 0)
		})
	}
}
