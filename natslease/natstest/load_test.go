package natstest

import (
	"flag"
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
	c := &child{member: m}
	c.start(t)
	t.Cleanup(func() { c.Kill() })
	if err := makeBucket(c.url(), 1); err != nil {
		t.Fatal(err)
	}
	enginetest.Load{Leases: asked, Hold: hold, Refusals: true}.Run(t, store(t, client(t, c.url()), nil))
}
