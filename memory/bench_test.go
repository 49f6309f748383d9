package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

var sizes = []int{1_000, 1_000_000}

func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "lease-" + strconv.Itoa(i)
	}
	return names
}

// shuffled is an order of all names in which none is near the one before.
func shuffled(names []string) []string {
	order := append([]string(nil), names...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

var holder = lease.ID{1}

func acquire(name string, id lease.ID, d time.Duration) (string, lease.Request) {
	return name, lease.Request{Action: lease.Acquire, Proposed: id, Owner: "worker-1", Duration: d}
}

// held is an authority over a Store in which all names are leased.
func held(tb testing.TB, names []string) lease.Authority {
	a := lease.NewAuthority(memory.New(nil))
	for _, name := range names {
		_, req := acquire(name, holder, time.Hour)
		if _, err := a.Do(context.Background(), name, req); err != nil {
			tb.Fatal(err)
		}
	}
	return a
}

// BenchmarkLimit is what nothing in this package can be faster than: a mutex, a look-up in
// a map and a reading of the clock. Renewing is measured against it.
func BenchmarkLimit(b *testing.B) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var mu sync.Mutex
			all := names(n)
			leases := make(map[string]*lease.Record)
			for _, name := range all {
				leases[name] = new(lease.Record)
			}
			order := shuffled(all)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				mu.Lock()
				leases[order[i]].Until = time.Now()
				mu.Unlock()
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkRenew is a renewal through the one decision path: Load, Step, Swap.
func BenchmarkRenew(b *testing.B) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all := names(n)
			a := held(b, all)
			order := shuffled(all)
			renew := lease.Request{Action: lease.Renew, ID: holder}
			ctx := context.Background()
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Do(ctx, order[i], renew); err != nil {
					b.Fatal(err)
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkGrant is the first Acquire of a name, and the memory that it keeps. The bytes of
// the name and of the owner are the caller's and are not counted.
func BenchmarkGrant(b *testing.B) {
	all := names(1_000_000)
	_, req := acquire("", holder, time.Hour)
	ctx := context.Background()
	var a lease.Authority
	var before uint64
	kept, i := 0.0, 0
	b.ReportAllocs()
	for b.Loop() {
		if i%len(all) == 0 {
			b.StopTimer()
			if i > 0 {
				kept = float64(heap()-before) / float64(len(all))
			}
			a = nil
			before = heap()
			a = lease.NewAuthority(memory.New(nil))
			b.StartTimer()
		}
		if _, err := a.Do(ctx, all[i%len(all)], req); err != nil {
			b.Fatal(err)
		}
		i++
	}
	if kept == 0 {
		kept = float64(heap()-before) / float64(i)
	}
	b.ReportMetric(kept, "kept-B/lease")
	runtime.KeepAlive(a)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCores is renewing from as many goroutines as there are cores (-cpu 1,2), each
// with names of its own.
func BenchmarkCores(b *testing.B) {
	const each = 1_000
	cores := runtime.GOMAXPROCS(0)
	all := names(each * cores)
	a := held(b, all)
	renew := lease.Request{Action: lease.Renew, ID: holder}
	next := make(chan []string, cores)
	for i := range cores {
		next <- all[i*each : (i+1)*each]
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		mine, ctx := <-next, context.Background()
		for i := 0; pb.Next(); i++ {
			if _, err := a.Do(ctx, mine[i%each], renew); err != nil {
				panic(err)
			}
		}
	})
}

// BenchmarkOnce is the whole life of a name that is leased once and released, without end.
func BenchmarkOnce(b *testing.B) {
	a := lease.NewAuthority(memory.New(nil))
	release := lease.Request{Action: lease.Release, ID: holder}
	ctx := context.Background()
	var n int
	b.ReportAllocs()
	for b.Loop() {
		name, req := acquire(fmt.Sprint("once-", n), holder, time.Hour)
		if _, err := a.Do(ctx, name, req); err != nil {
			b.Fatal(err)
		}
		if _, err := a.Do(ctx, name, release); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
