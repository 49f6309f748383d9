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

// maxRealTime limits the real time of a rule in a synctest bubble, where most rules take less than a second.
const maxRealTime = time.Minute

// runInBubble tests the rule r in a synctest bubble. It reports a deadlock if all goroutines of the bubble
// are blocked, for example because one of them has panicked while it held a mutex. The goroutines then stay
// blocked, and the suite goes on with the other rules.
func (s *suite) runInBubble(t *testing.T, r rule) {
	var p *tester
	number := ""
	stuck := func(what string) string {
		return fmt.Sprintf("leasetest: rule %s %s\nSPEC %s: %s\nhistory:\n%s\nreplay: %s\n\n%s",
			r.name, what, r.clause(), r.says, p.history, s.replay(t.Name()), stacks(number))
	}
	ended := false // set to true by the cleanup function that runs last
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
		t.Cleanup(func() { // registered first, so that it runs last
			select {
			case <-done: // a cleanup function may have unblocked the rule
			case <-time.After(min(s.timeLimit(), 10*year)):
			}
			time.Sleep(time.Microsecond) // let handlers of the suite end that sleep for less than a microsecond
			ended = true
		})
		number = bubbleOf(string(debug.Stack()))
		p = s.tester(t, r)
		go func() {
			defer close(done)
			p.guarded(func() { r.check(p) })()
		}()
		select {
		case <-done:
		case <-time.After(2 * s.timeLimit()): // in a bubble this takes no real time
			text := stuck("cannot end: every goroutine waits for another.")
			p.drawing.Lock()
			p.said = append(p.said, text)
			p.drawing.Unlock()
			t.Error(text)
		}
	})
}

var bubbleNumber = regexp.MustCompile(`^goroutine .*synctest bubble (\d+)`)

// bubbleOf finds the number of a synctest bubble in the stack trace of a goroutine. If the trace contains no
// such number, bubbleOf returns "".
func bubbleOf(stack string) string {
	if m := bubbleNumber.FindStringSubmatch(stack); m != nil {
		return m[1]
	}
	return ""
}

func stacks(bubble string) string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var in []string
	for _, one := range strings.Split(string(all), "\n\n") {
		if bubbleOf(one) == bubble {
			in = append(in, one)
		}
	}
	return strings.Join(in, "\n\n")
}

// timeLimit returns the longest fake time that a rule may take in its synctest bubble. For leases it is
// shorter, because their timers fire often and take real time. Fake time begins in 2000, and the runtime
// cannot count beyond 2262. A bubble can therefore last for at most 262 years. With a limit of 120 years, the
// waits of runInBubble add up to 250 years.
func (s *suite) timeLimit() time.Duration {
	if s.newLease != nil {
		return 2*time.Hour + 1000*s.options.leaseDuration()
	}
	return 120 * year
}

const year = 365 * 24 * time.Hour

// startWatchdog ends the process if the rule r takes too much real time. The timer of the watchdog is outside
// the synctest bubble, because the time of a bubble can stand still. Before the process ends, the watchdog
// prints the messages of all failed rules, because go test does not print these messages if the process
// panics. The returned function stops the watchdog.
func (s *suite) startWatchdog(t *testing.T, r rule) (end func()) {
	limit := cmp.Or(s.longest, maxRealTime)
	if deadline, ok := t.Deadline(); ok { // go test prints no messages of the rules either if the test times out
		limit = min(limit, time.Until(deadline)*9/10)
	}
	name := t.Name()
	alarm := time.AfterFunc(limit, func() {
		debug.SetTraceback("all") // print the stack traces of all goroutines
		panic(fmt.Sprintf(`leasetest: rule %s has not ended after %v of real time.
SPEC %s: %s
The rule runs in a synctest bubble, where time passes only while every goroutine waits for a channel or a timer of the bubble.
A goroutine waits for a sync.Mutex that is held during a request, waits for I/O, or runs in a loop, for example a Wait that ignores its context.
Below, look for the goroutine of a "synctest bubble" that is not "durable".
Replace the mutex with a channel of capacity 1, or do not set Options.Bubble.
replay: %s%s`, r.name, limit.Round(time.Millisecond), r.clause(), r.says, s.replay(name), s.failures()))
	})
	return func() { alarm.Stop() }
}
