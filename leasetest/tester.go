package leasetest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

func (s *suite) tester(t testing.TB, r rule) *tester {
	seed := fnv.New64a()
	_ = binary.Write(seed, binary.BigEndian, s.options.Seed)
	_, _ = seed.Write([]byte(r.name))
	p := &tester{TB: t, Options: s.options, suite: s, rule: r, history: new(history), over: make(chan struct{}), rand: rand.New(rand.NewPCG(s.options.Seed, seed.Sum64()))}
	p.name = fmt.Sprintf("leasetest/%s/%08x", r.name, p.rand.Uint32())
	p.history.drawing.Title = r.name + ": SPEC " + r.clause()
	if p.Bubble {
		// A bubble begins at a whole second. The rule therefore begins at a random time within this second,
		// because a clock that drops fractions of a second would otherwise go unnoticed.
		time.Sleep(time.Duration(p.rand.Int64N(int64(time.Second))))
	}
	p.began = time.Now()
	p.D = p.leaseDuration()
	if p.realTime {
		p.Sleep = func(d time.Duration) { p.history.delays.sleep(d, time.Sleep) }
	}
	// The context ctx ends those calls of the rule that would block forever.
	bound := 100 * p.D
	if p.Bubble {
		bound = s.timeLimit()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	p.ctx = ctx
	return p
}

// A tester is the testing.TB of one rule. Its error messages contain the clause of SPEC.md and the history.
type tester struct {
	testing.TB
	Options
	suite      *suite
	rule       rule
	history    *history
	drawing    sync.Mutex // guards rand, said and shownLines
	rand       *rand.Rand
	began      time.Time
	ctx        context.Context
	name       string             // the name of a lease that no other rule uses
	D          time.Duration      // the duration of the leases of this rule
	said       []string           // the violations that have been reported
	shownLines int                // the number of history lines that have been reported
	gates      []*leasefault.Gate // these gates are opened before the leases are closed
	over       chan struct{}      // closed at the end of the rule, but before the leases are closed
	end        sync.Once          // calls close(over) once
}

func (p *tester) Errorf(format string, args ...any) {
	p.Helper()
	p.TB.Errorf("%s", p.violation(fmt.Sprintf(format, args...)))
}

func (p *tester) Fatalf(format string, args ...any) {
	p.Helper()
	p.TB.Fatalf("%s", p.violation(fmt.Sprintf(format, args...)))
}

// violation returns the message for a violation, with the lines of the history since the previous violation.
func (p *tester) violation(what string) string {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	when := fmt.Sprintf("at %v; history", time.Since(p.began))
	if p.suite.steps {
		when = "history, with the times that were passed"
	}
	if len(p.said) > 0 {
		when += " since what was violated before"
	}
	history, shown := p.history.linesAfter(p.shownLines)
	p.shownLines = shown
	text := fmt.Sprintf("SPEC %s is violated: %s\n%s\n%s:\n%s\nreplay: %s%s",
		p.rule.clause(), p.rule.says, what, when, history, p.suite.replay(p.Name()), p.drawPicture(what))
	p.said = append(p.said, text)
	p.suite.mu.Lock()
	defer p.suite.mu.Unlock()
	p.suite.said = append(p.suite.said, text)
	return text
}

// panic panics on purpose. If the implementation does not recover, the message says why the process ended.
func (p *tester) panic(who string) {
	panic(fmt.Sprintf(`leasetest: %s panics, as rule %s wants it.
If that ended the process, nothing recovered from it, and SPEC %s is violated: %s
The results of the other rules: %s -run '%s' -skip '%s'`,
		who, p.rule.name, p.rule.clause(), p.rule.says, goTest(), pattern(strings.TrimSuffix(p.Name(), "/"+p.rule.name)), pattern(p.Name())))
}

// guarded returns a function that calls f and handles a panic. Rules call f in a goroutine, where a panic of
// the implementation under test would end the process without naming the rule. In a bubble, the panic only
// makes the rule fail. Outside a bubble, the rule might wait forever after the panic, so the returned
// function ends the process, with a message that names the rule.
func (p *tester) guarded(f func()) func() {
	return func() {
		defer func() {
			switch v := recover(); {
			case v == nil:
			case p.Bubble:
				p.Errorf("a panic: %v\n%s", v, debug.Stack())
			default:
				panic(fmt.Sprintf("leasetest: a panic in rule %s: %v\nSPEC %s: %s%s", p.rule.name, v, p.rule.clause(), p.rule.says, p.suite.failures()))
			}
		}()
		f()
	}
}

func (p *tester) need(err error, what string) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// The functions newStore and Options.Store.Another, for example, return a value of the type under test. The
// method checkMade checks such a value. The rule fails if the value is nil, and is skipped if the value lacks
// a method that the rule needs.
func (p *tester) checkMade(v any, by string) {
	p.Helper()
	if r := reflect.ValueOf(v); v == nil || r.Kind() == reflect.Pointer && r.IsNil() {
		p.TB.Fatalf("leasetest: %s of this test returned nil; rule %s was not checked", by, p.rule.name)
	}
	p.Can |= methodsOf(v)
	if missing := p.rule.needs &^ p.Can; missing != 0 && by != "Options.Lease.Authority" {
		p.suite.skip(p.TB, p.rule, missing)
	}
}

func (p *tester) pass(d time.Duration) {
	p.Sleep(d)
	if p.Bubble {
		synctest.Wait()
	}
}

// A call can return while one of its requests is still on its way to the authority. The method settle waits
// until this request has arrived.
func (p *tester) settle() { p.pass(p.Unit / 20) }

func (p *tester) id() (id lease.ID) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	binary.BigEndian.PutUint64(id[:8], p.rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], p.rand.Uint64()|1) // never zero
	return id
}

// A recorder is a testing.TB that stores the messages of failures without marking the test as failed. It passes
// log messages on to the test.
type recorder struct {
	testing.TB // implements all other methods

	mu       sync.Mutex
	messages []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) record(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
}

// result returns the messages so far, and whether the test was skipped. Goroutines of a test that has ended
// may still report failures, so result takes the mutex.
func (r *recorder) result() (messages []string, skipped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages), r.skipped
}

func (r *recorder) Errorf(format string, args ...any) { r.record(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.record(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() { r.Fatal("FailNow") }
func (r *recorder) Fail()    { r.Error("Fail") }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages) > 0
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// run calls f in a goroutine. When f has ended, it calls the cleanup functions that f has registered.
func (r *recorder) run(f func()) {
	separate := func(f func()) { // in a new goroutine, so that FailNow ends only f
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	separate(f)
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		last := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		separate(last)
	}
}
