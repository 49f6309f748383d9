package natstest

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
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
	l := enginetest.Load{Leases: 1000, Hold: 25 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 200, Hold: 4 * time.Second}
	}
	l.Run(t, store(t, client(t, endpoint), nil))
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
	enginetest.Load{Leases: asked, Hold: hold, Refusals: true, Held: func() {
		t.Logf("%.0f syncs/s before, and %.0f beside the renewals", syncs, syncsPerSecond(t, m.Dir))
	}}.Run(t, store(t, client(t, c.url()), nil))
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
