package natstest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/session"
)

// One process holds 1,000 leases of 10 s at a single server, over one connection, and loses none.
// With -short, the process holds fewer leases.
func TestManyLeases(t *testing.T) {
	t.Parallel()
	manyLeases(t, newChild(t).url())
}

// One process holds 1,000 leases in a cluster of three servers, and loses none.
func TestManyLeasesAtACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	manyLeases(t, c.members[(c.leader(t)+1)%3].url())
}

func manyLeases(t *testing.T, endpoint string) {
	const workers = 32
	leases, held := 1000, 25*time.Second
	if testing.Short() {
		leases, held = 200, 4*time.Second
	}
	s := store(t, client(t, endpoint), nil)
	var lost atomic.Int64
	all := make([]*session.Session, leases)
	for i := range all {
		l, err := s.Lease(fmt.Sprint("many/", i), &session.Options{Duration: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l.OnLost(func(error) { lost.Add(1) })
		all[i] = l
	}
	defer together(workers, leases, func(i int) { _ = all[i].Close(context.Background()) })
	began := time.Now()
	together(workers, leases, func(i int) {
		if _, err := session.AcquireWait(t.Context(), all[i], nil); err != nil {
			t.Error(err)
		}
	})
	acquired := time.Since(began)
	time.Sleep(held) // a real engine
	alive := 0
	for _, l := range all {
		if l.CheckAlive() {
			alive++
		}
	}
	if n := lost.Load(); n > 0 || alive != leases {
		t.Errorf("%d leases were lost, %d are held after %v", n, alive, held)
	}
	began = time.Now()
	listed := 0
	for _, err := range s.List(t.Context(), "many/") {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != leases {
		t.Errorf("%d leases are listed", listed)
	}
	t.Logf("%d leases acquired in %v, held for %v, listed in %v, none lost", leases, acquired, held, time.Since(began))
}

// together calls f with each number below n. The given number of goroutines share the calls.
func together(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
