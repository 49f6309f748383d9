package simulate

import (
	"context"
	"time"
)

// A prompt holder stops its work well within the stop window, and therefore before the work of
// another holder begins. A paused holder is excused, because a paused process cannot stop its work.
// If the work of a paused holder overlaps the work of another holder, the simulation only counts
// the overlap, and the guard must refuse the writes.

// stopTime is the longest time that a prompt holder needs to stop its work. stopTime is well within
// the default stop window of 5 s.
const stopTime = 2 * time.Second

// wakeUp is the longest time after a pause until a holder notices that its lease has ended.
const wakeUp = time.Second

// workBegins records that a holder begins its work, and checks whether the work of another holder
// has stopped.
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

// stop waits for the time that the work needs to stop after its context has ended. A prompt holder
// needs less than the stop window. Holders that are not prompt often need longer, and then lose the
// lease.
func (a *actor) stop(held context.Context, prompt bool) {
	switch {
	case held.Err() == nil:
	case prompt:
		a.sleep(context.Background(), stopTime)
	default:
		a.sleep(context.Background(), duration)
	}
}
