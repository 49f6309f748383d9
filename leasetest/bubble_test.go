package leasetest

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A panickyGuard recovers from nothing.
type panickyGuard struct{ Guard }

func (g panickyGuard) Do(tok lease.Token, f func() error) error {
	return g.Guard.Do(tok, func() error {
		result := make(chan error)
		go func() { result <- f() }()
		return <-result
	})
}

// A blockedGuard never returns.
type blockedGuard struct{ Guard }

func (blockedGuard) Do(lease.Token, func() error) error { select {} }

// childVariable says, in a child of TestEndsOfTheProcess, which of them it is to come to.
const childVariable = "LEASETEST_END"

// If the process or a rule ends early, the message names the rule, the clause, the cause, and what to do.
// Every other rule of the suite starts, too. Each case runs in a child process of this test.
func TestEndsOfTheProcess(t *testing.T) {
	leases := func(bubble bool, bug string, names ...string) *suite {
		s := buggySessions(bug)
		s.longest, s.rules = time.Second, nil
		for _, name := range names {
			s.rules = append(s.rules, rulesNamed(t, leaseRules, name)...)
		}
		if !bubble {
			s.options = (&Options{Unit: 20 * time.Millisecond, Seed: 1}).withDefaults()
		}
		return s
	}
	guards := func(bug string, wrap func(Guard) Guard, names ...string) *suite {
		s := plainGuards(bug)
		s.rules = nil
		for _, name := range names {
			s.rules = append(s.rules, rulesNamed(t, guardRules, name)...)
		}
		s.newGuard = func(t testing.TB) Guard { return wrap(plainGuards(bug).newGuard(t)) }
		return s
	}
	const (
		once   = "H5/acquires-at-once-are-one-term"
		panics = "H16/a-panic-stops-no-other"
		raises = "G3/a-failure-does-not-lower-the-mark"
		me     = "^TestEndsOfTheProcess$"
		replay = "LEASETEST_SEED=1 go test github.com/fencedlease/lease/leasetest -run '" + me
	)
	locked := leases(true, "keeps a mutex while it asks", once)
	fails := rule{"H1/fails-first", "a rule fails before", 0, func(p *tester) { p.Errorf("its message") }}
	locked.rules = append([]rule{fails}, locked.rules...)
	const panicky, broken = "recovers from nothing", "panics in every acquire"
	panicked := []string{"leasetest: a handler of OnLost panics, as rule " + panics + " wants it", "nothing recovered from it, and SPEC H16 is violated: a handler that panics stops no other handler",
		"go test github.com/fencedlease/lease/leasetest -run '" + me + "' -skip '" + me + "/^H16$/^a-panic-stops-no-other$'"}
	ends := map[string]struct {
		suite *suite
		says  []string
	}{
		"mutex": {locked, []string{"rule " + once + " has not ended after 1s", "SPEC H5: calls of acquire at the same time on one lease get the same term",
			"Rules that failed before: H1/fails-first\n\tSPEC H1 is violated: a rule fails before\n\tits message", "sync.Mutex", "I/O", replay + "/^H5$/^acquires-at-once-are-one-term$'", "leasetest.(*buggySession).AcquireWithToken"}},
		"handler":              {leases(true, panicky, panics), panicked},
		"handler in real time": {leases(false, panicky, panics), panicked},
		"blocked guard": {guards("", func(g Guard) Guard { return blockedGuard{g} }, "G4/equal-tokens-pass", "G1/no-older-token-after-a-newer"),
			[]string{"rule G4/equal-tokens-pass cannot end", "SPEC G4: ", "leasetest.blockedGuard.Do", replay + "/^G4$/^equal-tokens-pass$'", "rule G1/no-older-token-after-a-newer cannot end"}},
		"failure before a panic": {guards("compares nothing", func(g Guard) Guard { return panickyGuard{g} }, "G1/no-older-token-after-a-newer", raises), []string{"SPEC G1 is violated",
			"another rule has failed, and the panic of this one may end the process", "--- SKIP: TestEndsOfTheProcess/" + raises + " "}},
		"panic of the implementation": {leases(true, broken, once, "H1/granted-is-held"), []string{"SPEC H5 is violated", "SPEC H1 is violated", "a panic: no lease today", "leasetest.(*buggySession).AcquireWithToken"}},
		"panic in real time":          {leases(false, broken, once), []string{"leasetest: a panic in rule " + once + ": no lease today", "leasetest.(*buggySession).AcquireWithToken"}},
		"guarded function":            {guards("", func(g Guard) Guard { return panickyGuard{g} }, raises), []string{"leasetest: the function under the guard panics", "SPEC G3 is violated"}},
	}
	if end := os.Getenv(childVariable); end != "" {
		ends[end].suite.test(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run="+me, "-test.v", "-test.timeout=5m")
			cmd.Env = append(os.Environ(), childVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Fatalf("it ended with %v, and said\n%s", err, out)
			}
			for _, text := range end.says {
				if !strings.Contains(string(out), text) {
					t.Errorf("it does not say %q, but\n%.5000s", text, out)
				}
			}
			for _, r := range end.suite.rules {
				if !strings.Contains(string(out), "=== RUN   TestEndsOfTheProcess/"+r.name+"\n") {
					t.Errorf("%s: it has not had its turn", r.name)
				}
			}
		})
	}
}

// rulesNamed are the rules of that name.
func rulesNamed(t *testing.T, rules []rule, name string) []rule {
	t.Helper()
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("there is no rule %s", name)
	}
	return rules[i : i+1]
}

// A run without an edit of the test is replayed by the environment.
func TestSeedOfTheEnvironment(t *testing.T) {
	for text, want := range map[string]uint64{"17": 17, "18446744073709551615": 1<<64 - 1} {
		t.Setenv(seedVariable, text)
		got, own := (*Options)(nil).withDefaults().Seed, (&Options{Seed: 3}).withDefaults().Seed
		if got != want || own != 3 {
			t.Errorf("%s=%s: the seed is %d, want %d, and with Options.Seed = 3 it is %d", seedVariable, text, got, want, own)
		}
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, seedVariable) || !strings.Contains(said, "from 1 to") {
			t.Errorf("it panics with %q", said)
		}
	}()
	t.Setenv(seedVariable, "-1")
	(*Options)(nil).withDefaults()
}
