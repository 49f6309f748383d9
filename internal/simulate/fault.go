package simulate

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

// A Promise is what a fault may exclude by its nature, and what a violation is of.
type Promise uint8

const (
	belief    Promise = 1 << iota // of the holder: nobody believes while another's ID is in force
	order                         // tokens rise with every grant
	otherwise                     // nothing excludes these: the guard, told once, live again
)

// A Fault is something that goes wrong for a while.
type Fault struct {
	Name     string
	Excludes Promise

	// begin makes it go wrong, and returns what ends that.
	begin func(w *world, rng *rand.Rand) (end func())
}

// Faults are the twenty kinds. Those of the network befall one holder at a time.
var Faults = []*Fault{
	network("request delayed", func(w *world, d time.Duration) leasetest.Fault {
		return leasetest.Detach(w.t, leasetest.DelayRequest(d))
	}),
	network("answer delayed", func(_ *world, d time.Duration) leasetest.Fault { return leasetest.DelayAnswer(d) }),
	network("request lost", func(*world, time.Duration) leasetest.Fault { return leasetest.LoseRequest }),
	network("answer lost", func(*world, time.Duration) leasetest.Fault { return leasetest.LoseAnswer }),
	network("error without commit", func(*world, time.Duration) leasetest.Fault { return leasetest.FailRequest }),
	network("error after commit", func(*world, time.Duration) leasetest.Fault { return leasetest.FailAnswer }),
	network("duplicate", func(*world, time.Duration) leasetest.Fault { return leasetest.Duplicate }),
	network("late duplicate", func(w *world, d time.Duration) leasetest.Fault {
		return leasetest.Repeat(w.t, leasetest.DelayRequest(d))
	}),
	{Name: "stale read", begin: func(w *world, _ *rand.Rand) func() {
		w.stale.Store(true)
		return func() { w.stale.Store(false) }
	}},
	{Name: "store restarted, memory lost", Excludes: belief | order, begin: once(func(w *world, _ *rand.Rand) {
		w.restart[leasetest.LoseMemory]()
	})},
	{Name: "store restarted, term anew", begin: once(func(w *world, _ *rand.Rand) { w.restart[leasetest.ResetTerm]() })},
	{Name: "store clock forward", Excludes: belief, begin: once(func(w *world, rng *rand.Rand) {
		w.clock.Step(time.Duration(rng.Int64N(int64(2 * duration))))
	})},
	{Name: "store clock backward", begin: once(func(w *world, rng *rand.Rand) {
		w.clock.Step(-time.Duration(rng.Int64N(int64(duration))))
	})},
	{Name: "store clock at another rate", begin: func(w *world, rng *rand.Rand) func() {
		w.clock.Rate(1 + clockRate*(2*rng.Float64()-1))
		return func() { w.clock.Rate(1) }
	}},
	{Name: "store clock stopped", begin: func(w *world, _ *rand.Rand) func() {
		w.clock.Rate(0)
		return func() { w.clock.Rate(1) }
	}},
	{Name: "holder paused", begin: func(w *world, rng *rand.Rand) func() {
		a := w.actors[rng.IntN(holders)]
		a.pause()
		return a.resume
	}},
	{Name: "break at once", Excludes: belief, begin: revoke(lease.In(0))},
	{Name: "break with grace", begin: revoke(lease.In(duration))},
	{Name: "hostile record", begin: func(w *world, _ *rand.Rand) func() {
		w.hostile.Store(true)
		return func() { w.hostile.Store(false) }
	}},
	{Name: "context ended", begin: func(w *world, rng *rand.Rand) func() {
		a := w.actors[rng.IntN(holders)]
		a.hasty.Store(true)
		return func() { a.hasty.Store(false) }
	}},
}

// network is a fault of the way from one holder to the authority. It befalls some of the
// calls, with a delay of its own each, from nothing to longer than a lease.
func network(name string, f func(w *world, d time.Duration) leasetest.Fault) *Fault {
	return &Fault{Name: name, begin: func(w *world, rng *rand.Rand) func() {
		a := w.actors[rng.IntN(holders)]
		often, most := rng.Float64(), 1.5*float64(duration)*rng.Float64()
		fault := leasetest.Fault(func(ctx context.Context, c *leasetest.Call) error {
			if w.float() > often {
				return c.Send(ctx)
			}
			return f(w, time.Duration(w.float()*most))(ctx, c)
		})
		a.network.Store(&fault)
		return func() { a.network.CompareAndSwap(&fault, nil) }
	}}
}

func once(f func(*world, *rand.Rand)) func(*world, *rand.Rand) func() {
	return func(w *world, rng *rand.Rand) func() {
		f(w, rng)
		return func() {}
	}
}

func revoke(p lease.Period) func(*world, *rand.Rand) func() {
	return once(func(w *world, _ *rand.Rand) {
		_, _ = lease.Revoke(context.Background(), lease.NewAuthority(w.store), name, p) // refused if nobody holds
	})
}

// inflict lets f come and go until the context ends.
func (w *world) inflict(ctx context.Context, f *Fault, rng *rand.Rand) {
	draw := func(most time.Duration) bool {
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(most)))):
			return true
		case <-ctx.Done():
			return false
		}
	}
	for draw(2 * duration) {
		end := f.begin(w, rng)
		draw(2 * duration)
		end()
	}
}
