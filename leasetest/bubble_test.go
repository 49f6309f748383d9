package leasetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A lockedLease is as many would write it first: a mutex, held while it asks.
type lockedLease struct {
	*plainLease
	asking sync.Mutex
}

func (l *lockedLease) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	return l.plainLease.AcquireWithToken(ctx)
}

// A frailLease recovers from nothing.
type panickyLease struct{ *plainLease }

func (l panickyLease) OnLost(f func(error)) (stop func() bool) {
	return l.plainLease.OnLost(func(err error) { go f(err) })
}

// A frailGuard does the same.
type panickyGuard struct{ Guard }

func (g panickyGuard) Do(tok lease.Token, f func() error) error {
	return g.Guard.Do(tok, func() error {
		result := make(chan error)
		go func() { result <- f() }()
		return <-result
	})
}

// A lockedGuard keeps its slot if the function panics.
type lockedGuard struct {
	Guard
	slot chan struct{}
}

func (g lockedGuard) Do(tok lease.Token, f func() error) error {
	g.slot <- struct{}{}
	err := g.Guard.Do(tok, f)
	<-g.slot
	return err
}

// A blockedGuard never returns.
type blockedGuard struct{ Guard }

func (blockedGuard) Do(lease.Token, func() error) error { select {} }

// A brokenLease panics in every Acquire.
type brokenLease struct{ lease.Lease }

func (brokenLease) Acquire(context.Context) (bool, error) { panic("no lease today") }

func (brokenLease) AcquireWithToken(context.Context) (lease.Token, bool, error) {
	panic("no lease today")
}

// childVariable says, in a child of TestEndsOfTheProcess, which of them it is to come to.
const childVariable = "LEASETEST_END"

// If the process or a rule ends early, the message names the rule and the clause, the cause, and
// what to do. Every other rule of the suite starts, too. Each case runs in a child process of this
// test.
func TestEndsOfTheProcess(t *testing.T) {
	locked := plainLeases("")
	locked.longest = time.Second
	locked.newLease = func(t testing.TB, h Holder) lease.Lease { return &lockedLease{plainLease: newPlainLease(t, h, "")} }
	fails := rule{"H1/fails-first", "a rule fails before", 0, func(p *probe) { p.Errorf("its message") }}
	locked.rules = append([]rule{fails}, rulesNamed(t, leaseRules, "H5/acquires-at-once-are-one-incarnation")...)

	frail := plainLeases("")
	frail.newLease = func(t testing.TB, h Holder) lease.Lease { return panickyLease{newPlainLease(t, h, "")} }

	real := plainLeases("")
	real.newLease = frail.newLease
	real.rules = rulesNamed(t, leaseRules, "H16/a-panic-stops-no-other")
	real.options = (&Options{Unit: 20 * time.Millisecond, Can: Everything &^ CanTakeOver, Seed: 1}).withDefaults()

	guard := plainGuards("")
	guard.newGuard = func(t testing.TB) Guard { return panickyGuard{plainGuards("").newGuard(t)} }

	naive := plainLeases("")
	naive.options = (&Options{Bubble: true, Seed: 1, Can: Everything &^ (CanTakeOver | CanUseClock)}).withDefaults()
	naive.newLease = func(t testing.TB, h Holder) lease.Lease { return newOneLockLease(t, h) }
	naive.rules = leaseRules[:len(leaseRules)-len(panicRules)]

	const me = "^TestEndsOfTheProcess$"
	const replay = "LEASETEST_SEED=1 go test github.com/fencedlease/lease/leasetest -run '" + me
	slot := plainGuards("")
	slot.newGuard = func(t testing.TB) Guard { return lockedGuard{plainGuards("").newGuard(t), make(chan struct{}, 1)} }
	slot.rules = rulesNamed(t, guardRules, "G3/a-failure-does-not-lower-the-mark")

	failed := plainGuards("compares nothing")
	failed.newGuard = func(t testing.TB) Guard { return panickyGuard{plainGuards("compares nothing").newGuard(t)} }
	failed.rules = slices.Concat(rulesNamed(t, guardRules, "G1/no-older-token-after-a-newer"), slot.rules)

	blocked := plainGuards("")
	blocked.newGuard = func(t testing.TB) Guard { return blockedGuard{plainGuards("").newGuard(t)} }
	blocked.rules = slices.Concat(rulesNamed(t, guardRules, "G4/equal-tokens-pass"), rulesNamed(t, guardRules, "G1/no-older-token-after-a-newer"))

	broken := plainLeases("")
	broken.newLease = func(t testing.TB, h Holder) lease.Lease { return brokenLease{newPlainLease(t, h, "")} }
	broken.rules = slices.Concat(rulesNamed(t, leaseRules, "H5/acquires-at-once-are-one-incarnation"), rulesNamed(t, leaseRules, "H1/granted-is-held"))

	brokenInRealTime := plainLeases("")
	brokenInRealTime.newLease, brokenInRealTime.rules = broken.newLease, broken.rules[:1]
	brokenInRealTime.options = real.options

	panicked := []string{"leasetest: a handler of OnLost panics, as rule H16/a-panic-stops-no-other wants it", "nothing recovered from it, and SPEC H16 is violated: a handler that panics stops no other handler",
		"go test github.com/fencedlease/lease/leasetest -run '" + me + "' -skip '" + me + "/^H16$/^a-panic-stops-no-other$'"}
	ends := map[string]struct {
		suite *suite
		says  []string
	}{
		"mutex": {locked, []string{"rule H5/acquires-at-once-are-one-incarnation has not ended after 1s", "SPEC H5: calls of acquire at the same time on one lease get the same incarnation",
			"Rules that failed before: H1/fails-first\n\tSPEC H1 is violated: a rule fails before\n\tits message", "sync.Mutex", "I/O", replay + "/^H5$/^acquires-at-once-are-one-incarnation$'", "leasetest.(*lockedLease).AcquireWithToken"}},
		"handler":              {frail, panicked},
		"handler in real time": {real, panicked},
		"slot": {slot, []string{"rule G3/a-failure-does-not-lower-the-mark cannot end", "SPEC G3: a function that fails or panics leaves the mark raised",
			replay + "/^G3$/^a-failure-does-not-lower-the-mark$'"}},
		"blocked guard": {blocked, []string{"rule G4/equal-tokens-pass cannot end", "SPEC G4: ", "leasetest.blockedGuard.Do",
			replay + "/^G4$/^equal-tokens-pass$'", "rule G1/no-older-token-after-a-newer cannot end"}},
		"one turn for everything": {naive, []string{
			"SPEC H17 is violated: CheckAlive is false from the call of release on, before the authority is asked", "CheckAlive does not return while the release is under way",
			"rule H16/every-method-may-be-called-inside leaves goroutines behind that wait for each other", "SPEC H16: a handler may call every method",
			"rule H15/reported-at-the-end-though-a-request-hangs cannot end", "leasetest.(*oneLockLease).renew",
			replay + "/^H17$/^the-belief-ends-with-the-call$'", replay + "/^H16$/^every-method-may-be-called-inside$'"}},
		"failure before a panic": {failed, []string{"SPEC G1 is violated",
			"another rule has failed, and the panic of this one may end the process", "--- SKIP: TestEndsOfTheProcess/" + slot.rules[0].name + " "}},
		"panic of the implementation": {broken, []string{"SPEC H5 is violated", "SPEC H1 is violated", "a panic: no lease today", "leasetest.brokenLease.AcquireWithToken"}},
		"panic in real time":          {brokenInRealTime, []string{"leasetest: a panic in rule H5/acquires-at-once-are-one-incarnation: no lease today", "leasetest.brokenLease.AcquireWithToken"}},
		"guarded function":            {guard, []string{"leasetest: the function under the guard panics", "SPEC G3 is violated"}},
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
	for _, c := range []struct {
		text string
		o    Options
		want uint64
	}{
		{"17", Options{}, 17},
		{"18446744073709551615", Options{}, 1<<64 - 1},
		{"17", Options{Seed: 3}, 3},
	} {
		t.Setenv(seedVariable, c.text)
		if got := c.o.withDefaults().Seed; got != c.want {
			t.Errorf("%s=%s and Options.Seed = %d: the seed is %d, want %d", seedVariable, c.text, c.o.Seed, got, c.want)
		}
	}
	t.Setenv(seedVariable, "")
	if a, b := (*Options)(nil).withDefaults().Seed, (*Options)(nil).withDefaults().Seed; a == b {
		t.Errorf("two runs draw the same seed, %d", a)
	}
	for _, text := range []string{"0", "-1", "x", "18446744073709551616"} {
		t.Setenv(seedVariable, text)
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, seedVariable) || !strings.Contains(said, "from 1 to") {
					t.Errorf("%s=%s: it panics with %q", seedVariable, text, said)
				}
			}()
			(*Options)(nil).withDefaults()
		}()
	}
}

// The command of a replay chooses the rule and no other, whatever its name and that of the
// test are, and a shell passes it on.
func TestReplayChoosesTheRule(t *testing.T) {
	for kind, rules := range map[string][]rule{"store": storeRules, "authority": allAuthorityRules(), "lease": leaseRules, "guard": guardRules} {
		s := &suite{rules: rules, options: Options{Seed: 7}}
		for _, r := range rules {
			name := "TestMine/a_(b)_[c]+'d'/" + r.name
			seed, quoted, _ := strings.Cut(s.replay(name), " go test github.com/fencedlease/lease/leasetest -run ")
			chosen := strings.TrimSuffix(strings.TrimPrefix(quoted, "'"), "'")
			if seed != "LEASETEST_SEED=7" || quoted != "'"+chosen+"'" || strings.Contains(chosen, "'") {
				t.Fatalf("%s: %s: the replay is %s", kind, r.name, s.replay(name))
			}
			matches := matcher(t, chosen)
			for _, other := range rules {
				if got := matches("TestMine/a_(b)_[c]+'d'/" + other.name); got != (other.name == r.name) {
					t.Errorf("%s: %s chooses %s: %v", kind, chosen, other.name, got)
				}
			}
		}
	}
}

// matcher returns a function that reports whether go test runs the test of a name under the pattern.
func matcher(t *testing.T, pattern string) func(name string) bool {
	var patterns []*regexp.Regexp
	for p := range strings.SplitSeq(pattern, "/") {
		r, err := regexp.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, r)
	}
	return func(name string) bool {
		names := strings.Split(name, "/")
		if len(names) != len(patterns) {
			return false
		}
		for i, r := range patterns {
			if !r.MatchString(names[i]) {
				return false
			}
		}
		return true
	}
}

// A oneLockLease is a simple lease with mistakes that a first version may have. It has one lock for
// all methods, and keeps the lock during requests and during calls of handlers. One goroutine
// renews the lease at fixed intervals.
type oneLockLease struct {
	Holder
	turn     chan struct{}
	n        byte
	id       lease.ID
	until    time.Time
	handlers map[int]func(error)
}

func newOneLockLease(t testing.TB, h Holder) *oneLockLease {
	l := &oneLockLease{Holder: h, turn: make(chan struct{}, 1), handlers: map[int]func(error){}}
	if lease.CheckName(h.Name) != nil || h.Duration < 1 {
		t.Fatal("a bad holder")
	}
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	go func() {
		for {
			select {
			case <-time.After(h.Duration / 3):
				l.renew()
			case <-quit:
				return
			}
		}
	}()
	return l
}

func (l *oneLockLease) renew() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.id.IsZero() {
		return
	}
	sent := time.Now()
	_, err := l.Authority.Do(context.Background(), l.Name, renew(l.id))
	if err == nil {
		l.until = sent.Add(l.Duration)
		return
	}
	if lease.CodeOf(err) != 0 || time.Now().After(l.until) {
		l.id = lease.ID{}
		for _, f := range l.handlers {
			f(err)
		}
	}
}

func (l *oneLockLease) Acquire(ctx context.Context) (bool, error) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if !l.id.IsZero() {
		return true, nil
	}
	l.n++
	id, sent := lease.ID{1, l.n, byte(len(l.Owner))}, time.Now()
	copy(id[4:], l.Owner)
	_, err := l.Authority.Do(ctx, l.Name, acquire(id, l.Duration))
	switch {
	case errors.Is(err, lease.ErrHeldByOther):
		return false, nil
	case err != nil:
		return false, err
	}
	l.id, l.until = id, sent.Add(l.Duration)
	return true, nil
}

func (l *oneLockLease) Release(ctx context.Context) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.id.IsZero() {
		return nil
	}
	_, err := l.Authority.Do(ctx, l.Name, release(l.id))
	l.id = lease.ID{}
	return err
}

func (l *oneLockLease) CheckAlive() bool {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return !l.id.IsZero() && time.Now().Before(l.until)
}

func (l *oneLockLease) OnLost(f func(error)) (stop func() bool) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	n := len(l.handlers)
	l.handlers[n] = f
	return func() bool {
		l.turn <- struct{}{}
		defer func() { <-l.turn }()
		_, ok := l.handlers[n]
		delete(l.handlers, n)
		return ok
	}
}
