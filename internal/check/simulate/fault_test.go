package simulate

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A fault is something that goes wrong for a while.
type fault struct {
	name   string
	begin  func(w *world) (end func())
	voids  bool // the promise at the holder does not hold under it, so only the guard is checked
	pauses bool // the work of a holder may stop too late
}

var faults = []fault{
	network("request delayed", func(w *world) leasefault.Fault {
		return leasefault.Detach(w.t, leasefault.DelayRequest(w.upTo(duration)))
	}),
	network("answer delayed", func(w *world) leasefault.Fault { return leasefault.DelayAnswer(w.upTo(duration)) }),
	network("request lost", func(*world) leasefault.Fault { return leasefault.LoseRequest }),
	network("answer lost", func(*world) leasefault.Fault { return leasefault.LoseAnswer }),
	network("error without commit", func(*world) leasefault.Fault { return leasefault.FailRequest }),
	network("error after commit", func(*world) leasefault.Fault { return leasefault.FailAnswer }),
	network("duplicate", func(*world) leasefault.Fault { return leasefault.Duplicate }),
	network("late duplicate", func(w *world) leasefault.Fault {
		return leasefault.Repeat(w.t, leasefault.DelayRequest(w.upTo(duration)))
	}),
	{name: "stale read", begin: func(w *world) func() {
		w.stale.Store(true)
		return func() { w.stale.Store(false) }
	}},
	{name: "hostile record", begin: func(w *world) func() {
		w.hostile.Store(true)
		return func() { w.hostile.Store(false) }
	}},
	{name: "store clock at another rate", begin: func(w *world) func() { return w.runs(w.rate(drift / 2)) }},
	{name: "store clock stopped", begin: func(w *world) func() { return w.runs(0) }},
	{name: "store clock forward", voids: true, begin: once(func(w *world) { w.clock.Step(w.upTo(2 * duration)) })},
	{name: "store clock backward", begin: once(func(w *world) { w.clock.Step(-w.upTo(duration)) })},
	{name: "store restarted, memory lost", voids: true, begin: once(func(w *world) { w.forget() })},
	{name: "store restarted, new term", begin: once(func(w *world) { w.restart() })},
	{name: "break at once", voids: true, begin: revoke(0)},
	{name: "break with grace", begin: revoke(duration)},
	{name: "holder paused", pauses: true, begin: func(w *world) func() {
		h := w.any()
		var f leasefault.Fault = leasefault.LoseRequest
		h.clock.Pause()
		h.fault.Store(&f)
		return func() {
			h.fault.Store(nil)
			h.clock.Resume()
		}
	}},
}

func (w *world) any() *holder { return w.holders[int(w.float()*float64(len(w.holders)))] }

// network makes a fault of the network of one holder.
func network(name string, f func(*world) leasefault.Fault) fault {
	return fault{name: name, begin: func(w *world) func() {
		h := w.any()
		var each leasefault.Fault = func(ctx context.Context, c *leasefault.Call) error { return f(w)(ctx, c) }
		h.fault.Store(&each)
		return func() { h.fault.CompareAndSwap(&each, nil) }
	}}
}

func (w *world) runs(rate float64) (end func()) {
	w.clock.Rate(rate)
	return func() { w.clock.Rate(1) }
}

func once(f func(*world)) func(*world) func() {
	return func(w *world) func() {
		f(w)
		return func() {}
	}
}

func revoke(grace time.Duration) func(*world) func() {
	return once(func(w *world) {
		_, _ = lease.Break(context.Background(), lease.NewAuthority(w.store), name, lease.Grace(grace)) // refused if the lease is free
	})
}
