package simulate

import (
	"context"
	"time"
)

// The work of a prompt holder stops as soon as its context ends, well within the stop window, so
// that it has stopped before the work of another holder begins. A pause excuses it: a process that
// does not run cannot stop. Then the overlap is counted, and the guard must refuse the writes.

// stopTime is how long, at most, the work of a prompt holder takes to stop: well within the default
// stop window of 5 s.
const stopTime = 2 * time.Second

// wakeUp is how long after a pause a holder may still be about to notice that its time is up.
const wakeUp = time.Second

// workBegins notes that the work of a holder begins, and checks whether other work has not stopped.
func (a *actor) workBegins(prompt bool) {
	w := a.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.actors {
		if b == a || !b.working || !b.prompt {
			continue
		}
		w.report.Overlaps++
		if w.excluded&belief == 0 && !b.pausedLately() {
			w.count(belief, "%s begins to work, and %s has not stopped", a.who, b.who)
		}
	}
	a.working, a.prompt = true, prompt
}

func (a *actor) workEnds() {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.working = false
}

// pausedLately reports whether the actor is paused, or was a moment ago.
func (a *actor) pausedLately() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paused != nil || !a.resumed.IsZero() && time.Since(a.resumed) < stopTime+wakeUp
}

// stop passes the time that the work needs to stop once its context has ended. A prompt holder
// needs less than the stop window. Others often need longer, and then lose the lease.
func (a *actor) stop(held context.Context, prompt bool) {
	switch {
	case held.Err() == nil:
	case prompt:
		a.sleep(context.Background(), stopTime)
	default:
		a.sleep(context.Background(), duration)
	}
}
