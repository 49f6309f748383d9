package etcdtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
)

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRenew compares a renewal with a bare compare and swap in etcd.
func BenchmarkRenew(b *testing.B) {
	c := client(b, shared.Client)
	ctx := context.Background()
	a := store(b, c, nil).Authority()
	do(b, a, b.Name(), acquire(idA, time.Hour), 0)
	res, err := c.Put(ctx, b.Name(), "")
	must(b, err)
	revision := res.Header.Revision
	value := fmt.Sprintf("%0150d", 0) // as long as the value of a lease
	shorthand.Benchmark(b, "txn", func() {
		_, err := a.Do(ctx, b.Name(), renew(idA))
		must(b, err)
	}, func() {
		res, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(b.Name()), "=", revision)).Then(clientv3.OpPut(b.Name(), value)).Commit()
		must(b, err)
		if !res.Succeeded {
			b.Fatal("the bare Txn conflicts")
		}
		revision = res.Header.Revision
	})
}

// BenchmarkAcquireRelease compares an acquire and a release with Lock and Unlock of a Mutex with a Session.
func BenchmarkAcquireRelease(b *testing.B) {
	c := client(b, shared.Client)
	ctx := context.Background()
	l, err := store(b, c, nil).Lease(b.Name(), nil)
	must(b, err)
	defer l.Close(ctx)
	s, err := concurrency.NewSession(c)
	must(b, err)
	defer s.Close()
	mutex := concurrency.NewMutex(s, b.Name()+"-mutex")
	shorthand.Benchmark(b, "mutex", func() {
		ok, err := l.Acquire(ctx)
		must(b, err)
		if !ok {
			b.Fatal("not acquired")
		}
		must(b, l.Release(ctx))
	}, func() {
		must(b, mutex.Lock(ctx))
		must(b, mutex.Unlock(ctx))
	})
}

// BenchmarkTakeOver measures the time from the crash of a holder to the grant of a waiting contender,
// with a lease and a Session of two seconds each. Run it with -benchtime 5x.
func BenchmarkTakeOver(b *testing.B) {
	const term = 2 * time.Second
	ctx := context.Background()
	n := 0
	shorthand.Benchmark(b, "mutex", func() {
		n++
		name := fmt.Sprint(b.Name(), n)
		holder := store(b, client(b, shared.Client), nil).Authority()
		_, err := holder.Do(ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: idA, Duration: term})
		must(b, err)
		l, err := store(b, client(b, shared.Client), nil).Lease(name, nil)
		must(b, err)
		_, err = session.AcquireWait(ctx, l, nil)
		must(b, err)
		must(b, l.Close(ctx))
	}, func() {
		name := fmt.Sprint(b.Name(), "-mutex", n)
		crashed := client(b, shared.Client)
		holder, err := concurrency.NewSession(crashed, concurrency.WithTTL(int(term/time.Second)))
		must(b, err)
		must(b, concurrency.NewMutex(holder, name).Lock(ctx))
		holder.Orphan()
		waiter, err := concurrency.NewSession(client(b, shared.Client))
		must(b, err)
		mutex := concurrency.NewMutex(waiter, name)
		must(b, mutex.Lock(ctx))
		must(b, mutex.Unlock(ctx))
		must(b, waiter.Close())
	})
}
