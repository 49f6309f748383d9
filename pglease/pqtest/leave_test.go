package pqtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/pglease/internal/pgserver"
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
	servers := [2]*pgserver.Server{}
	for i := range servers {
		dir, err := os.MkdirTemp("", "pqtest")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if servers[i], err = pgserver.New(dir, "fsync=off"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(servers[i].Stop)
	}
	for what, open := range map[string]func(t *testing.T, url string) opened{
		"pgx":    func(t *testing.T, url string) opened { return openPgx(t, url) },
		"lib/pq": func(t *testing.T, url string) opened { return open(t, url) },
		"database/sql with pgx": func(t *testing.T, url string) opened {
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			db.SetMaxOpenConns(8)
			db.SetMaxIdleConns(8)
			s, err := pglease.NewSQL(db, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return s
		},
	} {
		t.Run(what, func(t *testing.T) {
			database := servers[0].Database(t)
			if same := servers[1].Database(t); same != database {
				t.Fatalf("databases %s and %s", database, same)
			}
			to := pgserver.NewRedirect(t, servers[0])
			s := open(t, to.URL(database))
			a := s.Authority()
			var longest, longestWatch time.Duration
			for n := range switches {
				before, after := servers[n%2], servers[(n+1)%2]
				var all sync.WaitGroup
				for i := range 8 { // so that several connections are open
					all.Go(func() {
						req := lease.Request{Action: lease.ActionAcquire, Proposed: number(i), Duration: lease.Infinite}
						if _, err := a.Do(t.Context(), fmt.Sprint("held ", n, i), req); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				var signals <-chan struct{}
				if w, can := s.(lease.Watcher); can {
					var err error
					if signals, err = w.Watch(t.Context(), "x"); err != nil {
						t.Fatal(err)
					}
				}
				after.SetReadOnly(t, false)
				to.To(after)
				before.SetReadOnly(t, true)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
				name := fmt.Sprint("held ", n, n%8)
				switch n % 4 {
				case 0: // the other server does not know the lease
					if _, err := a.Do(ctx, name, lease.Request{Action: lease.ActionRenew, ID: number(n % 8)}); lease.CodeOf(err) != lease.ErrIDMismatch {
						t.Errorf("renewal: %v", err)
					}
				case 1:
					if _, err := a.Do(ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: number(9), Duration: time.Minute}); err != nil {
						t.Errorf("acquire: %v", err)
					}
				case 2:
					if _, err := a.Do(ctx, name, lease.Request{Action: lease.ActionRelease, ID: number(n % 8)}); lease.CodeOf(err) != lease.ErrIDMismatch {
						t.Errorf("release: %v", err)
					}
				case 3:
					for e, err := range s.List(ctx, fmt.Sprint("held ", n)) {
						t.Errorf("the list of the old server has %v, %v", e, err)
					}
				}
				longest = max(longest, time.Since(began))
				cancel()
				if signals == nil {
					continue
				}
				for open := true; open; {
					select {
					case _, open = <-signals:
					case <-time.After(10 * time.Second):
						t.Fatal("the watch does not end")
					}
				}
				longestWatch = max(longestWatch, time.Since(began))
			}
			t.Logf("%d switches: the next request took at most %v, and a watch ended within %v", switches, longest, longestWatch)
			for _, server := range servers {
				server.SetReadOnly(t, false)
			}
		})
	}
}
