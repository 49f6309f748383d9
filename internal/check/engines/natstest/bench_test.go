package natstest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/session"
)

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// engines calls f with a single server, and with three servers that each have a replica of the bucket.
func engines(b *testing.B, f func(b *testing.B, js jetstream.JetStream, replicas int)) {
	b.Run("R1", func(b *testing.B) { f(b, client(b, newChild(b).url()), 1) })
	b.Run("R3", func(b *testing.B) {
		c := newCluster(b)
		f(b, client(b, c.members[c.leader(b)].url()), 3)
	})
}

// BenchmarkRenew compares a renewal with the Update of a key by its revision.
func BenchmarkRenew(b *testing.B) {
	engines(b, func(b *testing.B, js jetstream.JetStream, _ int) {
		ctx := context.Background()
		a := store(b, js, nil).Authority()
		do(b, a, "ours", acquire(idA, time.Hour), 0)
		kv := bucket(b, js)
		value := fmt.Appendf(nil, "%0150d", 0) // as long as the value of a lease
		revision, err := kv.Create(ctx, "theirs", value)
		must(b, err)
		shorthand.Benchmark(b, "update", func() {
			_, err := a.Do(ctx, "ours", renew(idA))
			must(b, err)
		}, func() {
			revision, err = kv.Update(ctx, "theirs", value, revision)
			must(b, err)
		})
	})
}

// BenchmarkAcquireRelease compares an acquire and a release with a lock without a library, which
// creates a key with a time to live, and deletes it by its revision.
func BenchmarkAcquireRelease(b *testing.B) {
	engines(b, func(b *testing.B, js jetstream.JetStream, replicas int) {
		ctx := context.Background()
		l, err := store(b, js, nil).Lease("ours", nil)
		must(b, err)
		defer l.Close(ctx)
		c := natslease.BucketConfig("ttl", replicas)
		c.LimitMarkerTTL = time.Minute
		kv, err := js.CreateKeyValue(ctx, c)
		must(b, err)
		value := fmt.Appendf(nil, "%0150d", 0)
		shorthand.Benchmark(b, "create", func() {
			ok, err := l.Acquire(ctx)
			must(b, err)
			if !ok {
				b.Fatal("not acquired")
			}
			must(b, l.Release(ctx))
		}, func() {
			revision, err := kv.Create(ctx, "theirs", value, jetstream.KeyTTL(30*time.Second))
			must(b, err)
			must(b, kv.Delete(ctx, "theirs", jetstream.LastRevision(revision)))
		})
	})
}

// BenchmarkRefusal compares an acquire of a lease that another holder has with a direct read of the key.
func BenchmarkRefusal(b *testing.B) {
	engines(b, func(b *testing.B, js jetstream.JetStream, _ int) {
		ctx := context.Background()
		a := store(b, js, nil).Authority()
		do(b, a, "ours", acquire(idA, time.Hour), 0)
		kv := bucket(b, js)
		shorthand.Benchmark(b, "get", func() {
			if _, err := a.Do(ctx, "ours", acquire(idB, time.Hour)); lease.CodeOf(err) != lease.ErrHeldByOther {
				b.Fatal(err)
			}
		}, func() {
			_, err := kv.Get(ctx, "ours")
			must(b, err)
		})
	})
}

// BenchmarkTakeOver measures the time from the crash of a holder to the grant of a waiting contender,
// with a lease of two seconds. Run it with -benchtime 5x.
func BenchmarkTakeOver(b *testing.B) {
	const term = 2 * time.Second
	ctx := context.Background()
	js := client(b, shared.url())
	n, took := 0, time.Duration(0)
	for b.Loop() {
		n++
		name := fmt.Sprint(b.Name(), n)
		do(b, store(b, js, nil).Authority(), name, lease.Request{Action: lease.ActionAcquire, Proposed: idA, Duration: term}, 0)
		l, err := store(b, js, nil).Lease(name, nil)
		must(b, err)
		began := time.Now()
		_, err = session.AcquireWait(ctx, l, nil)
		must(b, err)
		took += time.Since(began)
		must(b, l.Close(ctx))
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(n), "ms-takeover")
}
