package leasetest

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var plant = flag.String("planted", "", "plant only the bugs of the matrix whose names match")

// A cellBug is a store that is sound but in one cell of the matrix: a state, an event in that state, and what
// goes wrong then.
type cellBug struct {
	name  string
	suite func() *suite
}

// Every bug of the matrix is found by a rule.
func TestMatrixBugs(t *testing.T) {
	only := regexp.MustCompile(*plant)
	var mu sync.Mutex
	finds, missed, planted := map[string]int{}, 0, 0
	t.Run("bugs", func(t *testing.T) {
		for _, b := range cellBugs() {
			if !only.MatchString(b.name) {
				continue
			}
			planted++
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				rule := b.suite().firstViolated(t)
				mu.Lock()
				defer mu.Unlock()
				if rule == "" {
					missed++
					t.Fatal("no rule finds it")
				}
				finds[rule]++
				t.Logf("found by %s", rule)
			})
		}
	})
	t.Logf("%d bugs planted, %d missed, %d rules found one", planted, missed, len(finds))
}

// Without a bug, the stores that the bugs are planted in keep every rule.
func TestMatrixBugsAreInSoundStores(t *testing.T) {
	if rule := wrappedStores("", nil).firstViolated(t); rule != "" {
		t.Errorf("rule %s is violated", rule)
	}
}

// firstViolated returns the name of the first rule that the implementation violates, or nothing.
func (s *suite) firstViolated(t *testing.T) string {
	for _, r := range s.rules {
		if r.needs&^(s.options.Can|methods) == 0 && !panickingRules[r.name] && len(s.violated(t, r)) > 0 {
			return r.name
		}
	}
	return ""
}

// violated runs the rule r, and returns the messages of its failures.
func (s *suite) violated(t *testing.T, r rule) (messages []string) {
	defer func() {
		if deadlock := recover(); deadlock != nil {
			messages = append(messages, fmt.Sprint(deadlock))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{TB: t}
		defer func() {
			messages = slices.DeleteFunc(rec.messages, func(m string) bool { return strings.HasPrefix(m, "leasetest: ") })
		}()
		rec.run(func() { s.check(rec, r) })
	})
	return messages
}
