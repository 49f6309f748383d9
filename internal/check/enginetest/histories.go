package enginetest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
)

// Histories lets run make histories, each of another seed, and checks that they are linearizable. If harm
// is not nil, it injects four faults during each history, and returns their names.
func Histories(t *testing.T, runs int, o histories.Options, run func(seed uint64, i int) *histories.History, harm func(*rand.Rand) string) {
	t.Helper()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	exchanges, faults, least := 0, map[string]int{}, 10*runs
	for i := range runs {
		done := make(chan *histories.History, 1)
		go func() { done <- run(seed+uint64(i), i) }()
		if harm != nil {
			for range 4 {
				time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // a real engine
				faults[harm(r)]++
			}
			least = 50 * runs
		}
		h := <-done
		if err := h.Check(o); err != nil {
			t.Fatalf("history %d, seed %d: %v", i, seed+uint64(i), err)
		}
		exchanges += h.Len()
	}
	t.Logf("%d histories of %d exchanges are linearizable under %v", runs, exchanges, faults)
	if exchanges < least {
		t.Error("that proves nothing")
	}
}

// Clients are several clients of one lease at a store without a clock.
type Clients struct {
	Begin func(name string, h *histories.History) // begins to record the exchanges of the authorities on the wire
	End   func()                                  // ends to

	stores      []lease.Store
	authorities []lease.Authority
}

// Add adds a client, which gives up a request when its patience is over.
func (c *Clients) Add(s Store, patience time.Duration) {
	c.stores = append(c.stores, Impatient(s, patience))
	c.authorities = append(c.authorities, impatientAuthority{s.Authority(), patience})
}

// Run makes history i. In every second one, the clients use their stores' authorities, which have a memory.
func (c *Clients) Run(ctx context.Context, seed uint64, i int, name string, requests int, d time.Duration) *histories.History {
	if i%2 == 0 {
		return histories.Run(ctx, seed, name, c.stores, requests, d)
	}
	h := new(histories.History)
	c.Begin(name, h)
	defer c.End()
	h.Run(ctx, seed, name, c.authorities, requests, d)
	return h
}

// Through makes an authority like that of a store, with a memory of its own. The function exchanges wraps the
// store to which it sends its loads and swaps, and renewals a store whose Swap is a renewal in one exchange.
type Through func(exchanges, renewals func(lease.Store) lease.Store) lease.Authority

// Remembering makes a history of clients that remember records. It adds to renewals the number of those
// that took one exchange, each of which must be exact.
func Remembering(t *testing.T, seed uint64, name string, clients []Through, requests int, d, patience time.Duration, renewals *atomic.Int64) *histories.History {
	h := new(histories.History)
	exchanges := func(s lease.Store) lease.Store { return h.Store(Impatient(s, patience)) }
	var authorities []lease.Authority
	for _, through := range clients {
		authorities = append(authorities, through(exchanges, func(s lease.Store) lease.Store { return Exact{exchanges(s), t, renewals} }))
	}
	h.Run(t.Context(), seed, name, authorities, requests, d)
	return h
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

// Impatient returns a store that gives up an exchange after a while, and does not know its outcome.
func Impatient(s lease.Store, patience time.Duration) lease.Store {
	return impatient{s, patience}
}

type impatient struct {
	lease.Store
	patience time.Duration
}

func (s impatient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	snap, err := s.Store.Load(ctx, name)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // a real engine: else a whole history fails while its server is down
	}
	return snap, err
}

func (s impatient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.Store.Swap(ctx, name, old, next)
}

type impatientAuthority struct {
	lease.Authority
	patience time.Duration
}

func (a impatientAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	return a.Authority.Do(ctx, name, req)
}
