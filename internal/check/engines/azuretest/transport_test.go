package azuretest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
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
			const connections, requestTimeout = 10, 2 * time.Second
			d := newDouble(t, nil)
			var wrong, gathering atomic.Bool
			var together sync.WaitGroup // makes the client open many connections
			together.Add(connections)
			first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case wrong.Load():
					harmed(w, r)
					return
				case gathering.Load():
					together.Done()
					together.Wait()
				}
				d.ServeHTTP(w, r)
			}))
			second := httptest.NewServer(d)
			p := enginetest.NewProxy(t, first.Listener.Addr().String(), nil)
			t.Cleanup(func() { p.Cut(); first.Close(); second.Close() })
			way := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
			t.Cleanup(way.CloseIdleConnections)
			leases := open(t, client(t, "http://"+p.Addr()+"/"+blobtest.DefaultAccount+"/"+box, azlease.NewTransport(way)))
			do(t, leases, "job", acquire(idA, time.Minute), 0)
			gathering.Store(true)
			var all sync.WaitGroup
			for i := range connections {
				all.Go(func() { _, _ = leases.Do(t.Context(), fmt.Sprint("job", i), reads) })
			}
			all.Wait()
			gathering.Store(false)
			wrong.Store(true)
			p.Target(second.Listener.Addr().String())
			try := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
				defer cancel()
				_, err := leases.Do(ctx, "job", renew(idA))
				return err
			}
			if try() == nil {
				t.Fatal("renewed by the wrong server")
			}
			if err := try(); err != nil {
				t.Error(err)
			}
		})
	}
}
