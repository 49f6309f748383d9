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

var (
	plantAll = flag.Bool("planted.all", false, "plant all bugs of the matrix, and not one in thirteen")
	plant    = flag.String("planted", "", "plant only the bugs of the matrix whose names match")
)

// A cellBug is an implementation that is sound but in one cell of the matrix: a state, an event in that
// state, and what goes wrong then.
type cellBug struct {
	kind  string // store or authority
	part  string // the state or the operation
	what  string
	suite func() *suite
}

func (b cellBug) name() string { return b.kind + "/" + b.part + "/" + b.what }

// cellBugs are the bugs of all cells. They follow from the matrix, and not from the rules.
func cellBugs() []cellBug {
	return slices.Concat(storeCellBugs(), authorityCellBugs())
}

// allowed are bugs that no rule finds, and why.
var allowed = map[string]string{
	"authority/available read/raises the epoch": "the epoch of an unknown name may rise although nothing is granted (S3)",
}

// Every bug of the matrix is found by a rule. The ordinary run plants one in thirteen; with the flag
// -planted.all it plants all of them.
//
//	go test -run MatrixBugs ./leasetest -planted.all -v
func TestMatrixBugs(t *testing.T) {
	only := regexp.MustCompile(*plant)
	var mu sync.Mutex
	finds, missed, planted := map[string]int{}, 0, 0
	t.Run("bugs", func(t *testing.T) {
		for i, b := range cellBugs() {
			if !only.MatchString(b.name()) || !*plantAll && *plant == "" && i%13 != 0 {
				continue
			}
			planted++
			t.Run(b.name(), func(t *testing.T) {
				t.Parallel()
				rule := b.suite().firstViolated(t)
				mu.Lock()
				defer mu.Unlock()
				reason, excused := allowed[b.name()]
				switch {
				case rule == "" && !excused:
					missed++
					t.Errorf("no rule finds it")
				case rule == "":
					t.Logf("no rule finds it: %s", reason)
				case excused:
					t.Errorf("rule %s finds it, and it is listed as one that no rule finds", rule)
				default:
					finds[rule]++
					t.Logf("found by %s", rule)
				}
			})
		}
	})
	t.Logf("%d bugs planted, %d missed, %d allowed, %d rules found one", planted, missed, len(allowed), len(finds))
}

// Without a bug, the implementations that the bugs are planted in keep every rule.
func TestMatrixBugsAreInSoundImplementations(t *testing.T) {
	for kind, s := range map[string]*suite{"store": wrappedStores(nil), "authority": wrappedAuthorities(nil)} {
		if rule := s.firstViolated(t); rule != "" {
			t.Errorf("%s: rule %s is violated", kind, rule)
		}
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
