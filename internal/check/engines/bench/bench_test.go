package bench

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-semver/semver"
	etcd "go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.uber.org/zap"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

var (
	holder  = lease.ID{1}
	acquire = lease.Request{Action: lease.ActionAcquire, Proposed: holder, Owner: "worker-1", Duration: time.Hour}
	renew   = lease.Request{Action: lease.ActionRenew, ID: holder}
)

// names returns n names, in an order in which few names are near the previous name.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "lease-" + strconv.Itoa(i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// The constant batch is the number of operations that are timed together.
const batch = 1_000

// A subject is an implementation that is measured. It does one operation with the i-th name.
type subject struct {
	name string
	do   func(i int) error
	took []time.Duration // the times of the batches
}

// batches times batches of operations of every subject in turn. All subjects use the same numbers i, which
// begin again after n.
func batches(b *testing.B, n int, subjects []subject) {
	for _, s := range subjects { // allocate all memory, and load it into the caches if it fits
		for i := range n {
			if err := s.do(i); err != nil {
				b.Fatal(s.name, err)
			}
		}
	}
	runtime.GC()
	for i := 0; b.Loop(); i += batch {
		for k := range subjects {
			s := &subjects[k]
			// Each subject starts at a different name, because the previous one may have filled the core's
			// caches.
			first := i + k*n/len(subjects)
			began := time.Now()
			for j := first; j < first+batch; j++ {
				if err := s.do(j % n); err != nil {
					b.Fatal(s.name, err)
				}
			}
			s.took = append(s.took, time.Since(began))
		}
	}
}

// median returns the time of an operation in the median batch, in nanoseconds.
func (s *subject) median() float64 {
	slices.Sort(s.took)
	return float64(s.took[len(s.took)/2]) / batch
}

func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all, ctx := names(n), context.Background()
			store := memory.New(nil)
			direct, swapping := store.Authority(), lease.NewAuthority(store)
			var mu sync.Mutex
			ends := make(map[string]*time.Time, n)
			lessor := newLessor(b)
			for i, name := range all {
				ends[name] = new(time.Time)
				if _, err := direct.Do(ctx, name, acquire); err != nil {
					b.Fatal(err)
				}
				if _, err := lessor.Grant(etcd.LeaseID(i+1), 3600); err != nil {
					b.Fatal(err)
				}
			}
			subjects := []subject{
				{name: "limit", do: func(i int) error {
					mu.Lock()
					defer mu.Unlock()
					*ends[all[i]] = time.Now()
					return nil
				}},
				{name: "authority", do: func(i int) error { _, err := direct.Do(ctx, all[i], renew); return err }},
				{name: "lessor", do: func(i int) error { _, err := lessor.Renew(etcd.LeaseID(i + 1)); return err }},
				{name: "swapping", do: func(i int) error { _, err := swapping.Do(ctx, all[i], renew); return err }},
			}
			batches(b, n, subjects)
			limit, own := subjects[0].median(), subjects[1].median()
			b.ReportMetric(0, "ns/op")
			for i := range subjects {
				b.ReportMetric(subjects[i].median(), subjects[i].name+"-ns")
			}
			b.ReportMetric(own/limit, "x-limit")
			b.ReportMetric(own/subjects[2].median(), "x-lessor")
			b.ReportMetric(testing.AllocsPerRun(1000, func() { _ = subjects[1].do(0) }), "allocs/renewal")
		})
	}
}

type version struct{}

func (version) Version() *semver.Version { return semver.New("3.7.0") }

// newLessor returns the lessor of an etcd server that is the leader.
func newLessor(b *testing.B) etcd.Lessor {
	be := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(b.TempDir(), "db"))
	le := etcd.NewLessor(zap.NewNop(), be, version{}, etcd.LessorConfig{MinLeaseTTL: 1})
	le.Promote(0)
	b.Cleanup(func() {
		le.Stop()
		if err := be.Close(); err != nil {
			b.Error(err)
		}
	})
	return le
}

// BenchmarkGrant grants leases of names that were never used, and begins with a new store after a million
// names. It leaves out the slowest tenth of the batches, because other programs interrupt some. The times
// still include the growth of the maps, which also happens in the other batches.
func BenchmarkGrant(b *testing.B) {
	const most = 1_000_000
	all, ctx := names(most), context.Background()
	type entry struct {
		lease.Snapshot
		name string
	}
	var grants []func(name string)
	fresh := func() {
		grants = nil
		runtime.GC()
		authority := memory.New(nil).Authority()
		var mu sync.Mutex
		entries, version := make(map[string]*entry), make([]byte, 12)
		grants = []func(string){
			func(name string) {
				if _, err := authority.Do(ctx, name, acquire); err != nil {
					b.Fatal(err)
				}
			},
			func(name string) {
				mu.Lock()
				defer mu.Unlock()
				entries[name] = &entry{lease.Snapshot{Version: string(version), Now: time.Now()}, name}
			},
		}
	}
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		next := i * batch % most
		if next == 0 {
			fresh()
		}
		for turn := range grants {
			k := (turn + i) % 2 // alternate, so that the garbage collector does not always interrupt the same subject
			began := time.Now()
			for _, name := range all[next : next+batch] {
				grants[k](name)
			}
			took[k] = append(took[k], time.Since(began))
		}
	}
	var each [2]float64
	for k := range took {
		slices.Sort(took[k])
		most := took[k][:(len(took[k])*9+9)/10]
		for _, d := range most {
			each[k] += float64(d) / float64(batch*len(most))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each[0], "authority-ns")
	b.ReportMetric(each[1], "map-ns")
	b.ReportMetric(each[0]/each[1], "x-map")
}

// BenchmarkCores measures renewals on one core and on all cores, in turn, and reports how many times as
// many renewals all cores do together. Each goroutine renews its own names. The benchmark measures one
// shared store, and a separate store for each core, which shows what the computer can do if nothing is
// shared. The fastest run of each kind counts, because other programs disturbed it least.
func BenchmarkCores(b *testing.B) {
	cores := runtime.GOMAXPROCS(0)
	if cores < 2 {
		b.Skip("needs -cpu 2")
	}
	const each, rounds = 1_000, 2
	all, ctx := names(each*cores), context.Background()
	shared := memory.New(nil).Authority()
	var one, own []lease.Authority
	for c := range cores {
		one, own = append(one, shared), append(own, memory.New(nil).Authority())
		for _, name := range all[c*each : (c+1)*each] {
			for _, a := range []lease.Authority{one[c], own[c]} {
				if _, err := a.Do(ctx, name, acquire); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	run := func(authorities []lease.Authority) time.Duration {
		var wg sync.WaitGroup
		var ready atomic.Int32
		var began time.Time
		for c, a := range authorities {
			wg.Go(func() {
				for ready.Add(1); ready.Load() < int32(len(authorities)); { // until each goroutine has a core
				}
				if c == 0 {
					began = time.Now()
				}
				for range rounds {
					for _, name := range all[c*each : (c+1)*each] {
						if _, err := a.Do(ctx, name, renew); err != nil {
							b.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	single, together, apart := run(one[:1]), run(one), run(own)
	for b.Loop() {
		single, together, apart = min(single, run(one[:1])), min(together, run(one)), min(apart, run(own))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(single)/(rounds*each), "one-core-ns")
	b.ReportMetric(float64(cores)*float64(single)/float64(together), "x-one-core")
	b.ReportMetric(float64(cores)*float64(single)/float64(apart), "x-store-each")
}
