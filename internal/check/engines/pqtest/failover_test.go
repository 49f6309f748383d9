package pqtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

// An opened store is a Store or an SQLStore.
type opened interface {
	lease.Store
	lease.Lister
	Authority() lease.Authority
}

// The writer becomes read-only and keeps all its connections open, while new connections go to another
// server. The next request of every kind is granted there, and a watch ends soon.
func TestStoreLeavesAReadOnlyServer(t *testing.T) {
	const requestTimeout = 2 * time.Second
	switches := 20
	if testing.Short() {
		switches = 4
	}
	servers := [2]*pgserver.Server{pgserver.NewFor(t, "fsync=off"), pgserver.NewFor(t, "fsync=off")}
	for what, open := range map[string]func(t *testing.T, url string) opened{
		"pgx":    func(t *testing.T, url string) opened { return openPgx(t, url, nil) },
		"lib/pq": func(t *testing.T, url string) opened { return open(t, url) },
	} {
		t.Run(what, func(t *testing.T) {
			database := servers[0].Database(t, pglease.Tables)
			if same := servers[1].Database(t, pglease.Tables); same != database {
				t.Fatalf("databases %s and %s", database, same)
			}
			to := enginetest.NewProxy(t, servers[0].Addr(), nil)
			s := open(t, strings.Replace(servers[0].URL(database), servers[0].Addr(), to.Addr(), 1))
			a := s.Authority()
			var longest time.Duration
			for n := range switches {
				before, after := servers[n%2], servers[(n+1)%2]
				shorthand.Together(8, 8, func(i int) { // so that several connections are open
					if _, err := a.Do(t.Context(), fmt.Sprint("held ", n, i), shorthand.Acquire(number(i), lease.Infinite)); err != nil {
						t.Error(err)
					}
				})
				var signals <-chan struct{}
				if w, can := s.(lease.Watcher); can {
					var err error
					if signals, err = w.Watch(t.Context(), "x"); err != nil {
						t.Fatal(err)
					}
				}
				after.SetReadOnly(t, false)
				to.Target(after.Addr())
				before.SetReadOnly(t, true)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
				name := fmt.Sprint("held ", n, n%8)
				if n%4 == 3 {
					for e, err := range s.List(ctx, fmt.Sprint("held ", n)) {
						t.Errorf("the list of the old server has %v, %v", e, err)
					}
				} else { // the other server does not know the lease
					req := []lease.Request{shorthand.Renew(number(n % 8)), shorthand.Acquire(number(9), time.Minute), shorthand.Release(number(n % 8))}[n%4]
					if _, err := a.Do(ctx, name, req); lease.CodeOf(err) != lease.ErrIDMismatch && (err != nil || req.Action != lease.ActionAcquire) {
						t.Errorf("%v: %v", req.Action, err)
					}
				}
				longest = max(longest, time.Since(began))
				cancel()
				if signals != nil && !shorthand.Within(signals, false) {
					t.Fatal("the watch does not end")
				}
			}
			t.Logf("%d switches: the next request took at most %v", switches, longest)
			for _, server := range servers {
				server.SetReadOnly(t, false)
			}
		})
	}
}
