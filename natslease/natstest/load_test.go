package natstest

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"iter"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/session"
)

// One process holds 1,000 leases of 10 s, fewer with -short, over one connection, and loses none.
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

var (
	wallLeases  = flag.Int("wall.leases", 10_000, "leases of 10 s that TestWall asks for")
	wallBuckets = flag.Int("wall.buckets", 8, "buckets in which TestWall keeps them")
)

// A server that syncs each write takes as many leases as fit, refuses the others when they are acquired,
// and loses none. Each bucket has a file of its own, and the disk syncs several files side by side.
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
	js := client(t, c.url())
	var all buckets
	for i := range *wallBuckets {
		name := fmt.Sprint("leases-", i)
		if _, err := js.CreateKeyValue(t.Context(), natslease.BucketConfig(name, 1)); err != nil {
			t.Fatal(err)
		}
		all = append(all, store(t, js, &natslease.Options{Bucket: name}))
	}
	enginetest.Load{Leases: asked, Hold: hold, Refusals: true}.Run(t, all)
}

// The buckets of one server share the leases by their names.
type buckets []*natslease.Store

func (b buckets) Lease(name string, o *session.Options) (*session.Session, error) {
	return b[crc32.ChecksumIEEE([]byte(name))%uint32(len(b))].Lease(name, o)
}

func (b buckets) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for _, s := range b {
			for e, err := range s.List(ctx, prefix) {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}
