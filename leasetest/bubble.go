package leasetest

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A rule in a bubble takes well under a second; one that takes this long never ends.
const longest = time.Minute

// bubble tests the rule r in a bubble. If all goroutines there wait for each other, for instance for a lock
// that was kept by a function that panicked, the rule reports that. It leaves the goroutines behind, and
// the other rules still run.
func (s *suite) bubble(t *testing.T, r rule) {
	var p *probe
	number := ""
	stuck := func(what string) string {
		return fmt.Sprintf("leasetest: rule %s %s\nSPEC %s: %s\nhistory:\n%s\nreplay: %s\n\n%s",
			r.name, what, r.clause(), r.says, p.history, s.replay(t.Name()), stacks(number))
	}
	ended := false // what the clean-up may hang at is not told yet
	defer func() {
		if deadlock := recover(); deadlock != nil {
			if !ended {
				t.Errorf("%s", strings.Join(p.said, "\n"))
			}
			t.Errorf("%s", stuck(fmt.Sprintf("leaves goroutines behind that wait for each other: %v", deadlock)))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		t.Cleanup(func() { // the first is the last
			select {
			case <-done: // the clean-up may have freed it
			case <-time.After(s.forever()):
			}
			time.Sleep(time.Microsecond) // handlers of the suite may sleep for less, and after this no time passes
			ended = true
		})
		number = bubbleOf(stack(false))
		p = s.probe(t, r)
		go func() {
			defer close(done)
			r.check(p)
		}()
		select {
		case <-done:
		case <-time.After(2 * s.forever()): // time leaps to it
			text := stuck("cannot end: every goroutine waits for another.")
			p.drawing.Lock()
			p.said = append(p.said, text)
			p.drawing.Unlock()
			t.Error(text)
		}
	})
}

// stack is the stack of this goroutine, or of all.
func stack(all bool) string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, all)])
}

var bubbleNumber = regexp.MustCompile(`^goroutine .*synctest bubble (\d+)`)

// bubbleOf is the number of the bubble that a goroutine is in, by its stack.
func bubbleOf(stack string) string {
	if m := bubbleNumber.FindStringSubmatch(stack); m != nil {
		return m[1]
	}
	return ""
}

// stacks are those of the goroutines in that bubble: who waits, and where.
func stacks(bubble string) string {
	var in []string
	for _, one := range strings.Split(stack(true), "\n\n") {
		if bubbleOf(one) == bubble {
			in = append(in, one)
		}
	}
	return strings.Join(in, "\n\n")
}

// forever is the time that a rule in a bubble has, which costs nothing: unless something looks
// from time to time, as leases do.
func (s *suite) forever() time.Duration {
	if s.newLease != nil {
		return 2*time.Hour + 1000*s.options.leaseDuration()
	}
	return 140 * 365 * 24 * time.Hour
}

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
