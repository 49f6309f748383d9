package leasetest

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// A rule in a bubble takes well under a second; one that takes this long never ends.
const longest = time.Minute

// stuck ends the process if everything in a bubble waits for what cannot come, such as a lock
// that a function which panicked has kept: time then leaps to the alarm. The function that it
// returns ends the watch.
func (s *suite) stuck(t *testing.T, r rule) (end func()) {
	name := t.Name()
	alarm := time.AfterFunc(2*forever, func() {
		debug.SetTraceback("all") // who waits, and where
		panic(fmt.Sprintf(`leasetest: rule %s cannot end: every goroutine waits for another.
SPEC %s: %s
replay: %s`, r.name, r.clause(), r.says, s.replay(name)))
	})
	return func() { alarm.Stop() }
}

// forever is the time that a rule in a bubble has, which costs nothing.
const forever = 100 * 365 * 24 * time.Hour

// watch ends the process if the rule r, in a bubble, does not end: nothing in the bubble can,
// for its time stands still. The function that it returns ends the watch. Where go test has no
// time-out nothing is watched, since somebody may be debugging.
func (s *suite) watch(t *testing.T, r rule) (end func()) {
	deadline, ok := t.Deadline()
	if !ok {
		return func() {}
	}
	limit := min(cmp.Or(s.longest, longest), time.Until(deadline)*9/10)
	name := t.Name()
	alarm := time.AfterFunc(limit, func() {
		debug.SetTraceback("all") // who waits, and where
		panic(fmt.Sprintf(`leasetest: rule %s has not ended after %v of real time.
SPEC %s: %s
The rule runs in a synctest bubble, where time passes only while every goroutine waits for a channel or a timer of the bubble.
Something there waits for something else, most likely for a sync.Mutex that is held across a request, or for I/O; or goes round and round, as a Wait that does not look at its context.
The goroutines below that are of a "synctest bubble" and not "durable" show which, and where.
Take turns by a channel of capacity 1, which contexts can end too; or do without Options.Bubble.
replay: %s`, r.name, limit.Round(time.Millisecond), r.clause(), r.says, s.replay(name)))
	})
	return func() { alarm.Stop() }
}
