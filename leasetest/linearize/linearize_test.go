package linearize

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

var (
	histories = flag.Int("histories", 2000, "that TestMemory checks")
	seed      = flag.Uint64("seed", 1, "of the first history")
)

const (
	term   = time.Second      // the longest lease of a Workload
	within = 10 * time.Second // for a search
)

// A world returns the authority of each client of a history.
type world func(t *testing.T, seed uint64) func(client int) lease.Authority

func record(t *testing.T, o *Options) *Recorder {
	t.Helper()
	rec, err := NewRecorder(o)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// history is one in fake time.
func history(t *testing.T, seed uint64, w world, o *Options) (rec *Recorder) {
	synctest.Test(t, func(t *testing.T) {
		rec = record(t, o)
		rec.Contend(t.Context(), w(t, seed), &Workload{Seed: seed})
	})
	return rec
}

// slow lets others come between the load and the swap of a request.
func slow(t *testing.T, s lease.Store, seed uint64) lease.Store {
	var n atomic.Uint64
	return leasefault.ScriptStore(s, leasefault.Always(leasefault.LoadOrSwap, func(ctx context.Context, c *leasefault.Call) error {
		d := rand.New(rand.NewPCG(seed, n.Add(1))).Int64N(int64(term / 20))
		return leasefault.DelayRequest(time.Duration(d))(ctx, c)
	}))
}

// lossy simulates a network that loses the request or the answer of a tenth of the calls.
func lossy(a lease.Authority, seed uint64) lease.Authority {
	return leasefault.Script(a, leasefault.Always(leasefault.Any, leasefault.Random(seed, 0.1,
		leasefault.FailRequest, leasefault.FailAnswer, leasefault.LoseRequest, leasefault.LoseAnswer)))
}

func sound(t *testing.T, seed uint64) func(int) lease.Authority {
	store := slow(t, memory.New(&memory.Options{Floor: lease.TokenOf(1000)}), seed)
	return func(i int) lease.Authority { return lossy(lease.NewAuthority(store), seed+uint64(i)<<32) }
}

// slowly is a sound world without losses.
func slowly(t *testing.T, seed uint64) func(int) lease.Authority {
	store := slow(t, memory.New(nil), seed)
	return func(int) lease.Authority { return lease.NewAuthority(store) }
}

// SPEC A2, A3, A4, M4, S1, S5: histories on memory are linearizable in its own time, to the nanosecond.
//
//	go test -run Memory -histories 100000 .
func TestMemory(t *testing.T) {
	var next atomic.Int64
	var requests atomic.Int64
	t.Run("histories", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= int64(*histories); n = next.Add(1) {
					s := *seed + uint64(n) - 1
					rec := history(t, s, sound, nil)
					requests.Add(int64(rec.Len()))
					if err := rec.Check(within, picture(t)); err != nil {
						t.Fatalf("seed %d: %v", s, err)
					}
				}
			})
		}
	})
	if !t.Failed() {
		t.Logf("%d histories of %d requests in all, seeds from %d: 0 illegal, 0 timed out", *histories, requests.Load(), *seed)
	}
}

// SPEC A2, A3, A4, M4: histories of the authority that decides under the store's own lock are linearizable:
// in fake time, over a network that delays and loses, and in real time, with goroutines that run at once.
func TestMemoryAuthority(t *testing.T) {
	direct := func(t *testing.T, seed uint64) func(int) lease.Authority {
		a := memory.New(nil).Authority()
		return func(i int) lease.Authority {
			var n atomic.Uint64
			return lossy(leasefault.Script(a, leasefault.Always(leasefault.Any, func(ctx context.Context, c *leasefault.Call) error {
				rng := rand.New(rand.NewPCG(seed+uint64(i)<<32, n.Add(1)))
				there, back := time.Duration(rng.Int64N(int64(term/20))), time.Duration(rng.Int64N(int64(term/20)))
				return leasefault.Chain(leasefault.DelayRequest(there), leasefault.DelayAnswer(back))(ctx, c)
			})), seed+uint64(i)<<32)
		}
	}
	for n := range uint64(max(1, *histories/4)) {
		if err := history(t, *seed+n, direct, nil).Check(within, picture(t)); err != nil {
			t.Fatalf("in fake time, seed %d: %v", *seed+n, err)
		}
	}
	for n := range uint64(max(1, *histories/20)) {
		a, rec := memory.New(nil).Authority(), record(t, nil)
		rec.Contend(t.Context(), func(int) lease.Authority { return a }, &Workload{Seed: *seed + n, Term: time.Millisecond})
		if err := rec.Check(within, picture(t)); err != nil {
			t.Fatalf("in real time, seed %d: %v", *seed+n, err)
		}
	}
}

// SPEC A2, A3: histories on memory are linearizable by the recorder's clock alone.
func TestMemoryObserved(t *testing.T) {
	for n := range uint64(max(1, *histories/10)) {
		if err := history(t, *seed+n, sound, &Options{Observed: true}).Check(within, picture(t)); err != nil {
			t.Fatalf("seed %d: %v", *seed+n, err)
		}
	}
}

// One Seed leads to one history.
func TestSeedRepeatsHistory(t *testing.T) {
	w := func(*testing.T, uint64) func(int) lease.Authority {
		a := memory.New(nil).Authority()
		return func(int) lease.Authority { return a }
	}
	if one, other := history(t, *seed, w, nil), history(t, *seed, w, nil); !reflect.DeepEqual(one.ops, other.ops) {
		t.Errorf("with seed %d:\n%v\nand then\n%v", *seed, one.ops, other.ops)
	}
}

// picture returns the path of the drawing of a failed history, an artifact of the test.
func picture(t *testing.T) string { return filepath.Join(t.ArtifactDir(), "history.html") }

// SPEC A2, A3, A4, M1, M4, M5, M6, M8, S1: every planted bug is found, exactly and, where it is not
// smaller than what the recorder's clock can tell, by that alone.
func TestPlantedBugs(t *testing.T) {
	for _, bug := range []struct {
		name  string
		store func(lease.Store) lease.Store
		auth  func(lease.Authority) lease.Authority
	}{
		{"swaps without comparing", func(s lease.Store) lease.Store { return blind{s} }, nil},
		{"acknowledges and forgets", func(s lease.Store) lease.Store { return forgetful{s} }, nil},
		{"ends leases early", func(s lease.Store) lease.Store {
			return leasefault.Tamper(s, func(_ string, r *lease.Record) {
				if r.State == lease.Leased && !r.Until.IsZero() {
					r.Until = r.Until.Add(-r.Duration / 4)
				}
			})
		}, nil},
		{"ends leases late", func(s lease.Store) lease.Store {
			return leasefault.Tamper(s, func(_ string, r *lease.Record) {
				if r.State == lease.Leased && !r.Until.IsZero() {
					r.Until = r.Until.Add(r.Duration)
				}
			})
		}, nil},
		{"forgets the epoch at release", func(s lease.Store) lease.Store {
			return leasefault.Tamper(s, func(_ string, r *lease.Record) {
				if r.State == lease.Available {
					*r = lease.Record{}
				}
			})
		}, nil},
		{"releases without comparing the ID", nil, func(a lease.Authority) lease.Authority {
			return changing{a, func(ctx context.Context, name string, req lease.Request) lease.Request {
				if res, err := lease.Inspect(ctx, a, name); req.Action == lease.ActionRelease && err == nil && res.Record.State.Locked() {
					req.ID = res.Record.ID
				}
				return req
			}}
		}},
		{"says that it broke and does not", nil, func(a lease.Authority) lease.Authority {
			return changing{a, func(_ context.Context, _ string, req lease.Request) lease.Request {
				if req.Action == lease.ActionBreak {
					req = lease.Request{Action: lease.ActionRead}
				}
				return req
			}}
		}},
		{"changes under the same token", func(s lease.Store) lease.Store { return unmarked{s} }, nil},
		{"carries out twice", nil, func(a lease.Authority) lease.Authority {
			return leasefault.Script(a, leasefault.Always(leasefault.Any, leasefault.Duplicate))
		}},
		{"calls more certain than it is", nil, func(a lease.Authority) lease.Authority {
			return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) { res.MinRemaining *= 2 })
		}},
		{"answers from memory", nil, func(a lease.Authority) lease.Authority {
			var last lease.Result // the answer to the last request that was granted
			return leasefault.Answer(a, func(req lease.Request, res *lease.Result, err *error) {
				if req.Action == lease.ActionRead && req.ID.IsZero() && !last.Now.IsZero() {
					*res, *err = last, nil
				} else if *err == nil {
					last = *res
				}
			})
		}},
		{"carries out what it said it did not", nil, func(a lease.Authority) lease.Authority {
			return leasefault.Answer(a, func(req lease.Request, res *lease.Result, err *error) {
				if *err == nil && req.Action == lease.ActionAcquire && res.Record.Epoch%3 == 0 {
					*res, *err = lease.Result{}, lease.ErrHeldByOther
				}
			})
		}},
	} {
		for mode, o := range map[string]*Options{"exact": nil, "observed": {Observed: true}, "late": {Observed: true, Late: true}} {
			if mode == "late" && (bug.name == "ends leases late" || bug.name == "calls more certain than it is") {
				continue // a lease may end late
			}
			t.Run(bug.name+"/"+mode, func(t *testing.T) {
				w := func(t *testing.T, seed uint64) func(int) lease.Authority {
					var store lease.Store = memory.New(nil)
					if bug.store != nil {
						store = bug.store(store)
					}
					store = slow(t, store, seed)
					return func(int) lease.Authority {
						a := lease.NewAuthority(store)
						if bug.auth != nil {
							a = bug.auth(a)
						}
						return a
					}
				}
				const most = 200
				for n := range uint64(20) { // without the bug, every history is linearizable
					if err := history(t, *seed+n, slowly, o).Check(within, ""); err != nil {
						t.Fatal(err)
					}
				}
				for n := range uint64(most) {
					err := history(t, *seed+n, w, o).Check(within, picture(t))
					if errors.Is(err, ErrTimeout) {
						t.Fatal(err)
					}
					if err != nil {
						t.Logf("found in history %d", n+1)
						if html, err := os.ReadFile(picture(t)); err != nil || !strings.Contains(string(html), "<html") {
							t.Errorf("no picture of it: %v", err)
						}
						return
					}
				}
				t.Errorf("not found in %d histories", most)
			})
		}
	}
}

type blind struct{ lease.Store }

func (s blind) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	now, err := s.Load(ctx, name)
	if err != nil {
		return now, err
	}
	next.Epoch = max(next.Epoch, now.Record.Epoch)
	return s.Store.Swap(ctx, name, now, next)
}

type forgetful struct{ lease.Store }

func (s forgetful) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if next.Epoch%5 == 4 {
		old.Record = next
		return old, nil
	}
	return s.Store.Swap(ctx, name, old, next)
}

// unmarked is a store that forgets the newer token of a change.
type unmarked struct{ lease.Store }

func (s unmarked) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if old.Record.State == lease.Leased && next.State == lease.Leased && next.Until.Equal(old.Record.Until) {
		next.Epoch = old.Record.Epoch
	}
	return s.Store.Swap(ctx, name, old, next)
}

// changing sends other requests than its caller.
type changing struct {
	lease.Authority
	change func(ctx context.Context, name string, req lease.Request) lease.Request
}

func (a changing) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return a.Authority.Do(ctx, name, a.change(ctx, name, req))
}
