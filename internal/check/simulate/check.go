package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

const mostViolations = 10 // the number of violations whose texts are kept

// violate records that a promise was broken.
func (w *world) violate(p Promise, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(p, format, args...)
}

func (w *world) count(p Promise, format string, args ...any) {
	if p == belief {
		w.report.ViolationsOfBelief++
	} else {
		w.report.Others++
	}
	if len(w.report.Violations) < mostViolations {
		w.report.Violations = append(w.report.Violations, fmt.Sprintf(format, args...))
	}
}

// sample calls look at random times.
func (w *world) sample(ctx context.Context) {
	steps := w.dice(samples, 0)
	for ctx.Err() == nil {
		step := steps.upTo(time.Second)
		time.Sleep(step)
		w.look(step)
	}
}

// look calls CheckAlive of all holders, and compares the results with the store at one instant. In
// a synctest bubble, no time passes during look. If a holder releases the lease at the same
// instant, its result does not count.
func (w *world) look(step time.Duration) {
	var believers []*actor
	for _, a := range w.actors {
		if !a.lease.CheckAlive() {
			continue
		}
		id := a.lease.ID()
		snap, err := w.store.Load(context.Background(), name)
		if err != nil || !a.lease.CheckAlive() || a.lease.ID() != id {
			continue
		}
		believers = append(believers, a)
		if r := snap.Record.At(snap.Now); w.excluded&belief == 0 && (!r.State.Locked() || r.ID != id) {
			w.violate(belief, "%s believes in %s; the store has %+v at %v", a.who, id, snap.Record, snap.Now)
		}
	}
	if w.excluded&belief == 0 && len(believers) > 1 {
		w.violate(belief, "%s and %s believe", believers[0].who, believers[1].who)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Samples++
	w.report.Held += step * time.Duration(len(believers))
}

// heal ends all faults, and waits until actors have acquired the lease twice. The wait for each
// acquire must not be longer than ten durations of the lease.
func (w *world) heal(ctx context.Context) {
	for _, a := range w.actors {
		a.network.Store(nil)
		a.hasty.Store(false)
		a.resume()
	}
	w.stale.Store(false)
	w.hostile.Store(false)
	w.clock.Rate(1)
	grants := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.report.Acquired
	}
	const bound = 10 * duration
	for range 2 { // Before the second acquire, no fault has any effect any more.
		before := grants()
		for waited := time.Duration(0); grants() == before; waited += time.Second {
			if waited > bound {
				w.violate(otherwise, "no holder has acquired for %v without any fault", bound)
				return
			}
			time.Sleep(time.Second)
		}
	}
}

// A resource is a number that holders increase behind the guard.
type resource struct {
	guard fencing.Guard
	mu    sync.Mutex
	value int
	last  lease.Token // the token of the last write
}

func (r *resource) read() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// write stores seen plus one. If the guard admits the write, no other holder may have written since
// the read, and no holder with a newer token may have written before.
func (a *actor) write(tok lease.Token, seen int) {
	r := &a.resource
	write := func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.value != seen && r.last != tok {
			a.violate(otherwise, "%s: with %s an update of %s is lost", a.who, tok, r.last)
		}
		if r.last.Compare(tok) > 0 {
			a.violate(otherwise, "%s: a write with %s after one with %s", a.who, tok, r.last)
		}
		r.value, r.last = seen+1, tok
		return nil
	}
	var err error
	if a.Unguarded {
		err = write()
	} else {
		err = r.guard.Do(tok, write)
	}
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	switch {
	case err == nil:
		a.report.Written++
	case errors.Is(err, fencing.ErrStale):
		a.report.Refused++
	default:
		a.count(otherwise, "%s: the guard: %v", a.who, err)
	}
}
