package natstest

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
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
	c := newCluster(t)
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
	c := newChild(t, func(m *member) { m.Sync = true })
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

// Asked for three times the leases that a bucket can carry, a Store holds at least four fifths of what it holds when
// asked for just enough, and loses none in either case.
func TestWallAtThreeTimesTheLoad(t *testing.T) {
	const rate, duration = 200, 6 * time.Second
	const fits = int(rate * duration / time.Second / 3) // each lease is renewed three times in its duration
	js := slow(t, client(t, newChild(t).url()), rate)
	held := func(asked int) (n int) {
		var lost atomic.Int64
		s := store(t, js, nil)
		o := &session.Options{Duration: duration, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{Ended: func(i session.EndInfo) {
			if i.Reason != lease.ErrReleased {
				lost.Add(1)
			}
		}}}
		all := make([]*session.Session, asked)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range all {
			var err error
			if all[i], err = s.Lease(fmt.Sprint("many/", i), o); err != nil {
				t.Fatal(err)
			}
			waiting.Go(func() { _, _ = session.AcquireWait(ctx, all[i], nil) })
		}
		time.Sleep(6 * duration) // a real engine
		for _, l := range all {
			if l.CheckAlive() {
				n++
			}
		}
		if lost := lost.Load(); lost > 0 {
			t.Errorf("%d were lost of %d that were asked for, and %d are held", lost, asked, n)
		}
		cancel()
		waiting.Wait()
		shorthand.Together(64, asked, func(i int) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = all[i].Close(ctx) // fails if an acquire was given up in the middle
		})
		return n
	}
	enough := held(fits * 3 / 4)
	more := held(fits * 3)
	t.Logf("%d are held of %d, and %d of %d", enough, fits*3/4, more, fits*3)
	if enough != fits*3/4 || more < enough*8/10 {
		t.Errorf("of %d that fit, %d are held if asked for %d, and %d if asked for %d", fits, enough, fits*3/4, more, fits*3)
	}
}

// slow returns a client whose writes reach the server one after the other, at the given rate per second, as if its
// disk were slow.
func slow(t *testing.T, js jetstream.JetStream, rate int) jetstream.JetStream {
	writes := make(chan *nats.Msg, 1000) // more than a Store has under way
	relay(t, js, "SLOW.", func(subject string, m *nats.Msg) bool {
		write := strings.HasPrefix(subject, "$KV.")
		if write {
			writes <- m
		}
		return write
	})
	var disk sync.WaitGroup
	t.Cleanup(disk.Wait)
	disk.Go(func() {
		for next := time.Now(); ; next = next.Add(time.Second / time.Duration(rate)) {
			if late := time.Now().Add(-100 * time.Millisecond); next.Before(late) {
				next = late
			}
			select {
			case m := <-writes:
				time.Sleep(time.Until(next)) // a real engine
				_ = js.Conn().PublishMsg(&nats.Msg{Subject: strings.TrimPrefix(m.Subject, "SLOW."), Reply: m.Reply, Header: m.Header, Data: m.Data})
			case <-t.Context().Done():
				return
			}
		}
	})
	slow, err := jetstream.NewWithAPIPrefix(js.Conn(), "SLOW")
	if err != nil {
		t.Fatal(err)
	}
	return slow
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
