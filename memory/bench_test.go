package memory_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "lease-" + strconv.Itoa(i)
	}
	return names
}

// shuffled returns the names in a random order.
func shuffled(names []string) []string {
	order := slices.Clone(names)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// held returns an authority over a Store in which all names are leased.
func held(tb testing.TB, names []string) lease.Authority {
	a := memory.New(nil).Authority()
	for _, name := range names {
		do(tb, a, name, acquire)
	}
	return a
}

// BenchmarkRenew measures a renewal through the Store's authority. After every thousand renewals, it
// measures a thousand times the work that every store must do: it locks a mutex, looks up a name in a map
// and reads the clock. The metric limit-ns is the median time of this work, and x-limit the time of a
// renewal divided by it. Other load on the machine slows both, so x-limit is nearly independent of it. The
// module internal/check/engines/bench compares more implementations.
func BenchmarkRenew(b *testing.B) {
	const batch = 1_000
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all := names(n)
			a := held(b, all)
			order := shuffled(all)
			order = append(order, order[:batch]...)
			var mu sync.Mutex
			ends := make(map[string]*time.Time)
			for _, name := range all {
				ends[name] = new(time.Time)
			}
			limit := func(names []string) time.Duration {
				began := time.Now()
				for _, name := range names {
					mu.Lock()
					*ends[name] = time.Now()
					mu.Unlock()
				}
				return time.Since(began)
			}
			var limits, renewals []time.Duration
			var began time.Time
			runtime.GC()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%batch == 0 {
					if i > 0 {
						renewals = append(renewals, time.Since(began))
					}
					b.StopTimer()
					from := (i + n/2) % n // these names differ from the names that are renewed next
					limits = append(limits, limit(order[from:from+batch]))
					b.StartTimer()
					began = time.Now()
				}
				if _, err := a.Do(context.Background(), order[i%n], renew); err != nil {
					b.Fatal(err)
				}
			}
			if len(renewals) > 0 {
				limit, renewal := median(limits)/batch, median(renewals)/batch
				b.ReportMetric(limit, "limit-ns")
				b.ReportMetric(renewal/limit, "x-limit")
			}
		})
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}

// BenchmarkGrant measures the first acquire of a name, and the memory that a lease needs besides the text
// of its name and owner. After the last name, it starts again with a new Store.
func BenchmarkGrant(b *testing.B) {
	all := names(1_000_000)
	var a lease.Authority
	var before uint64
	var kept float64
	granted := len(all)
	b.ReportAllocs()
	for b.Loop() {
		if granted == len(all) {
			b.StopTimer()
			if a != nil {
				kept = float64(heap()-before) / float64(granted)
			}
			a, granted = nil, 0
			before = heap()
			a = memory.New(nil).Authority()
			b.StartTimer()
		}
		do(b, a, all[granted], acquire)
		granted++
	}
	if kept == 0 {
		kept = float64(heap()-before) / float64(granted)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(all)
	b.ReportMetric(kept, "kept-B/lease")
}

// BenchmarkCores measures renewals on all cores (-cpu 1,2) in one Store. Each core renews its own names.
func BenchmarkCores(b *testing.B) {
	const each = 1_000
	cores := runtime.GOMAXPROCS(0)
	all := names(each * cores)
	a := held(b, all)
	parts := make(chan []string, cores)
	for part := range slices.Chunk(all, each) {
		parts <- part
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		part, ctx := <-parts, context.Background()
		for i := 0; pb.Next(); i++ {
			if _, err := a.Do(ctx, part[i%each], renew); err != nil {
				b.Error(err)
			}
		}
	})
}
