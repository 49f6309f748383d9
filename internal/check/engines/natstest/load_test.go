package natstest

import (
	"context"
	"errors"
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
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/session"
)

// One process holds 1,000 leases of 10 s, fewer with -short, over one connection to a cluster of three servers, and
// loses none.
func TestManyLeases(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := enginetest.Load{Leases: 1000, Hold: 25 * time.Second}
	if testing.Short() {
		l = enginetest.Load{Leases: 200, Hold: 4 * time.Second}
	}
	l.Run(t, store(t, client(t, c.members[(c.leader(t)+1)%3].url()), nil))
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
	held := func(asked int) int {
		s := store(t, js, nil)
		quiet := slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithCancel(t.Context())
		var held, lost atomic.Int64
		var all sync.WaitGroup
		for i := range asked {
			l, err := s.Lease(fmt.Sprint("many/", i), &session.Options{Duration: duration, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				err := session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
					held.Add(1)
					<-ctx.Done()
					return nil
				}, &session.RunOptions{Logger: quiet})
				if errors.Is(err, lease.ErrLost) {
					lost.Add(1)
				}
			})
		}
		time.Sleep(6 * duration) // a real engine
		if n := lost.Load(); n > 0 {
			t.Errorf("%d leases were lost of the %d that were asked for", n, asked)
		}
		n := held.Load()
		cancel()
		all.Wait()
		return int(n)
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
