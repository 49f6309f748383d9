package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Histories lets a function make histories, each with another seed and for another name, several at a time,
// and fails if it returns an error. The function returns the number of requests. If harm is not nil, it
// injects faults all the while, and returns their names.
func Histories(t *testing.T, runs int, history func(seed uint64, name string) (requests int, err error), harm func(*rand.Rand) string) {
	t.Helper()
	const workers = 8
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var requests atomic.Int64
	faults, over := map[string]int{}, make(chan struct{})
	go func() {
		defer close(over)
		Together(workers, runs, func(i int) {
			if t.Failed() {
				return
			}
			n, err := history(seed+uint64(i), fmt.Sprint(t.Name(), "/", i))
			if requests.Add(int64(n)); err != nil {
				t.Errorf("history %d, seed %d: %v", i, seed+uint64(i), err)
			}
		})
	}()
	for going := true; going; {
		var wait <-chan time.Time
		if harm != nil {
			wait = time.After(time.Duration(r.IntN(300)) * time.Millisecond) // a real engine
		}
		select {
		case <-over:
			going = false
		case <-wait:
			faults[harm(r)]++
		}
	}
	t.Logf("%d histories of %d requests are linearizable under %v", runs, requests.Load(), faults)
	if requests.Load() < int64(10*runs) {
		t.Error("that proves nothing")
	}
}

// Clients returns the authorities of n clients, each over a store that open makes. Every second client loads
// the record before each request. The others use the authority that the store recommends.
func Clients(n int, open func(i int) Store) (all []lease.Authority) {
	for i := range n {
		if s := open(i); i%2 == 0 {
			all = append(all, lease.NewAuthority(s))
		} else {
			all = append(all, s.Authority())
		}
	}
	return all
}

// An Exact store checks renewals: it must commit the record that the state machine computes for the time
// that the store returns.
type Exact struct {
	lease.Store
	T *testing.T
	N *atomic.Int64 // counts them
}

func (s Exact) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err == nil {
		s.N.Add(1)
		if want, refusal := lease.Step(old.Record, Renew(old.Record.ID), snap.Now); refusal != nil || snap.Record != want || old.Record.At(snap.Now) != old.Record {
			s.T.Errorf("%v was renewed at %v to %v, want %v, %v", old.Record, snap.Now, snap.Record, want, refusal)
		}
	}
	return snap, err
}
