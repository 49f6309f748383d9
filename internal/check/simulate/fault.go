package simulate

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A Promise is one of the promises that the simulation checks. A fault may exclude a promise that
// does not hold under that fault. Each violation is a violation of exactly one promise.
type Promise uint8

const (
	belief    Promise = 1 << iota // CheckAlive of a holder does not return true while another ID is in force
	order                         // tokens rise with every grant
	otherwise                     // the promises that no fault excludes, for example the promise of the guard
)

// A Fault is something that goes wrong for a while.
type Fault struct {
	Name     string
	Excludes Promise

	// begin starts the fault and returns a function that ends it.
	begin func(w *world, d *dice) (end func())
}

// Faults are the twenty kinds of faults. A fault of the network affects one holder at a time.
var Faults = []*Fault{
	network("request delayed", func(w *world, d time.Duration) leasefault.Fault {
		return leasefault.Detach(w.t, leasefault.DelayRequest(d))
	}),
	network("answer delayed", func(_ *world, d time.Duration) leasefault.Fault { return leasefault.DelayAnswer(d) }),
	network("request lost", func(*world, time.Duration) leasefault.Fault { return leasefault.LoseRequest }),
	network("answer lost", func(*world, time.Duration) leasefault.Fault { return leasefault.LoseAnswer }),
	network("error without commit", func(*world, time.Duration) leasefault.Fault { return leasefault.FailRequest }),
	network("error after commit", func(*world, time.Duration) leasefault.Fault { return leasefault.FailAnswer }),
	network("duplicate", func(*world, time.Duration) leasefault.Fault { return leasefault.Duplicate }),
	network("late duplicate", func(w *world, d time.Duration) leasefault.Fault {
		return leasefault.Repeat(w.t, leasefault.DelayRequest(d))
	}),
	{Name: "stale read", begin: func(w *world, _ *dice) func() {
		w.stale.Store(true)
		return func() { w.stale.Store(false) }
	}},
	{Name: "store restarted, memory lost", Excludes: belief | order, begin: once(func(w *world, _ *dice) {
		w.restart[leasefault.LoseMemory]()
	})},
	{Name: "store restarted, new term", begin: once(func(w *world, _ *dice) { w.restart[leasefault.ResetTerm]() })},
	{Name: "store clock forward", Excludes: belief, begin: once(func(w *world, d *dice) {
		w.clock.Step(d.upTo(2 * duration))
	})},
	{Name: "store clock backward", begin: once(func(w *world, d *dice) {
		w.clock.Step(-d.upTo(duration))
	})},
	{Name: "store clock at another rate", begin: func(w *world, d *dice) func() {
		w.clock.Rate(d.rate(clockRate))
		return func() { w.clock.Rate(1) }
	}},
	{Name: "store clock stopped", begin: func(w *world, _ *dice) func() {
		w.clock.Rate(0)
		return func() { w.clock.Rate(1) }
	}},
	{Name: "holder paused", begin: func(w *world, d *dice) func() {
		a := w.actors[d.one(holders)]
		a.pause()
		return a.resume
	}},
	{Name: "break at once", Excludes: belief, begin: revoke(lease.Grace(0))},
	{Name: "break with grace", begin: revoke(lease.Grace(duration))},
	{Name: "hostile record", begin: func(w *world, _ *dice) func() {
		w.hostile.Store(true)
		return func() { w.hostile.Store(false) }
	}},
	{Name: "context ended", begin: func(w *world, d *dice) func() {
		a := w.actors[d.one(holders)]
		a.hasty.Store(true)
		return func() { a.hasty.Store(false) }
	}},
}

// network returns a fault of the network between one holder and the authority. The fault affects
// some of the holder's calls. Each of these calls gets its own delay, from zero to longer than a
// lease.
func network(name string, f func(w *world, d time.Duration) leasefault.Fault) *Fault {
	return &Fault{Name: name, begin: func(w *world, d *dice) func() {
		a := w.actors[d.one(holders)]
		callFault := &callFault{often: d.float(), most: d.upTo(3 * duration / 2), fault: f}
		a.network.Store(callFault)
		return func() { a.network.CompareAndSwap(callFault, nil) }
	}}
}

// A callFault affects some of the calls, with a separate delay for each.
type callFault struct {
	often float64
	most  time.Duration
	fault func(w *world, d time.Duration) leasefault.Fault
}

func once(f func(*world, *dice)) func(*world, *dice) func() {
	return func(w *world, d *dice) func() {
		f(w, d)
		return func() {}
	}
}

func revoke(p lease.Period) func(*world, *dice) func() {
	return once(func(w *world, _ *dice) {
		_, _ = lease.Break(context.Background(), lease.NewAuthority(w.store), name, p) // refused if the lease is free
	})
}

// apply starts and ends f repeatedly until the context is done.
func (w *world) apply(ctx context.Context, f *Fault, d *dice) {
	pass := func(most time.Duration) bool {
		select {
		case <-time.After(d.upTo(most)):
			return true
		case <-ctx.Done():
			return false
		}
	}
	for pass(2 * duration) {
		end := f.begin(w, d)
		pass(2 * duration)
		end()
	}
}
