package natstest

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
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

// wallLeases is how many leases TestWall asks for.
var wallLeases = flag.Int("wall.leases", 10_000, "leases of 10 s that TestWall asks for")

// A server that syncs each write takes as many leases as fit, refuses the others when they are acquired,
// and loses none.
func TestWall(t *testing.T) {
	asked, hold := *wallLeases, 25*time.Second
	if testing.Short() {
		asked, hold = 500, 8*time.Second
	}
	m, err := newMember(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m.Sync = true
	syncs := syncsPerSecond(t, m.Dir)
	c := &child{member: m}
	c.start(t)
	t.Cleanup(func() { c.Kill() })
	if err := makeBucket(c.url(), 1); err != nil {
		t.Fatal(err)
	}
	s := store(t, client(t, c.url()), nil)
	var lost, held, refused atomic.Int64
	var last atomic.Value
	all := make([]*session.Session, asked)
	for i := range all {
		if all[i], err = s.Lease(fmt.Sprint("wall/", i), &session.Options{Duration: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		all[i].OnLost(func(error) { lost.Add(1) })
	}
	const workers = 64
	defer together(workers, asked, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = all[i].Close(ctx)
	})
	together(workers, asked, func(i int) {
		if ok, err := all[i].Acquire(t.Context()); ok {
			held.Add(1)
		} else {
			refused.Add(1)
			last.Store(err.Error())
		}
	})
	time.Sleep(hold) // a real engine
	t.Logf("%d leases of 10 s asked at %.0f syncs/s, and %.0f beside the renewals: %d held for %v, %d refused, %d lost; last refusal: %v", asked, syncs, syncsPerSecond(t, m.Dir), held.Load(), hold, refused.Load(), lost.Load(), last.Load())
	if lost.Load() > 0 || held.Load() == 0 {
		t.Errorf("%d of %d were lost", lost.Load(), held.Load())
	}
}

// syncsPerSecond measures how often one writer can write 300 bytes to a file and sync it.
func syncsPerSecond(t *testing.T, dir string) float64 {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	data, n, began := make([]byte, 300), 0, time.Now()
	for ; time.Since(began) < time.Second; n++ {
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
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
