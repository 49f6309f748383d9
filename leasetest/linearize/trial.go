package linearize

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// TestOptions configure [TestHistories]. A nil *TestOptions or a zero field means the default.
type TestOptions struct {
	Options  Options                  // the options of the Recorder of each history
	Workload Workload                 // the clients of each history, without Seed and Name. Default Term: 6 ms, or 100 ms under faults. Default Timeout: a minute, or twice the Term under faults
	Runs     int                      // the number of histories; with -short, a twentieth of it. Default: 2,000, or 500 under faults
	Name     func(seed uint64) string // the name of the lease in the history of a seed. Default: "history-" and the seed
}

// TestHistories makes many histories of clients that contend for a lease of the target, eight histories at a
// time. It fails if a history is not linearizable. For each endpoint of the target, open makes a store. If
// open is nil, the endpoints are URLs for [enginetest.Open]. Every second client uses the authority that the
// store recommends, and the others load the record before each request.
//
// If faults are injected, set a Term that is a few times longer than a request takes, and not much longer
// than a fault. If a history is not linearizable, the message contains its seed. A run with this seed does
// not repeat the injected faults.
func TestHistories(t *testing.T, target enginetest.Target, open func(t testing.TB, endpoint string) enginetest.Store, o *TestOptions) {
	t.Helper()
	var v TestOptions
	if o != nil {
		v = *o
	}
	term, timeout := 6*time.Millisecond, time.Minute
	runs := 2000
	if target.Harm != nil {
		term, runs = 100*time.Millisecond, 500
		timeout = 2 * cmp.Or(v.Workload.Term, term)
	}
	v.Workload.Term, v.Workload.Timeout, v.Runs = cmp.Or(v.Workload.Term, term), cmp.Or(v.Workload.Timeout, timeout), cmp.Or(v.Runs, runs)
	if testing.Short() {
		v.Runs = max(1, v.Runs/20)
	}
	if v.Name == nil {
		v.Name = func(seed uint64) string { return fmt.Sprint("history-", seed) }
	}
	if open == nil {
		open = enginetest.Open
	}
	var clients []lease.Authority
	for i, endpoint := range target.Endpoints {
		if s := open(t, endpoint); i%2 == 0 {
			clients = append(clients, lease.NewAuthority(s))
		} else {
			clients = append(clients, s.Authority())
		}
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var requests atomic.Int64
	faults, over := map[string]int{}, make(chan struct{})
	go func() {
		defer close(over)
		shorthand.Together(8, v.Runs, func(i int) {
			if t.Failed() {
				return
			}
			w := v.Workload
			w.Seed = seed + uint64(i)
			w.Name = v.Name(w.Seed)
			n, err := Run(t.Context(), clients, &v.Options, &w)
			if requests.Add(int64(n)); err != nil {
				t.Errorf("history %d, seed %d: %v", i, w.Seed, err)
			}
		})
	}()
	for going := true; going; {
		var wait <-chan time.Time
		if target.Harm != nil {
			wait = time.After(time.Duration(r.IntN(300)) * time.Millisecond) // in real time, because a server cannot run in a synctest bubble
		}
		select {
		case <-over:
			going = false
		case <-wait:
			faults[target.Harm(r)]++
		}
	}
	t.Logf("%d histories of %d requests are linearizable under %v", v.Runs, requests.Load(), faults)
	if requests.Load() < int64(10*v.Runs) {
		t.Error("that proves nothing")
	}
}
