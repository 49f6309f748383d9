package leasetest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

func (s *suite) probe(t testing.TB, r rule) *probe {
	seed := fnv.New64a()
	_ = binary.Write(seed, binary.BigEndian, s.options.Seed)
	_, _ = seed.Write([]byte(r.name))
	p := &probe{TB: t, Options: s.options, suite: s, rule: r, history: new(history), over: make(chan struct{}), rand: rand.New(rand.NewPCG(s.options.Seed, seed.Sum64()))}
	p.name = fmt.Sprintf("leasetest/%s/%08x", r.name, p.rand.Uint32())
	p.began = time.Now()
	p.D = p.leaseDuration()
	// Calls that block return when this context ends.
	bound := 100 * p.D
	if p.Bubble {
		bound = s.timeLimit()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	p.ctx = ctx
	return p
}

// A probe is the testing.TB of one rule. An error message of a probe contains the violated clause
// and the history.
type probe struct {
	testing.TB
	Options
	suite      *suite
	rule       rule
	history    *history
	drawing    sync.Mutex
	rand       *rand.Rand
	began      time.Time
	ctx        context.Context
	name       string             // the name of a lease that no other rule uses
	D          time.Duration      // the duration of the leases of this rule
	said       []string           // the violations that have been reported; guarded by drawing
	shownLines int                // the number of history lines that have been reported; guarded by drawing
	gates      []*leasefault.Gate // opened before the leases are closed
	over       chan struct{}      // closed at the end of the rule, before the leases are closed
	end        sync.Once          // closes over
}

func (p *probe) Errorf(format string, args ...any) {
	p.Helper()
	p.TB.Errorf("%s", p.violation(fmt.Sprintf(format, args...)))
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Helper()
	p.TB.Fatalf("%s", p.violation(fmt.Sprintf(format, args...)))
}

// violation returns the message for a violated rule. The message contains the lines of the history
// that no earlier message contains.
func (p *probe) violation(what string) string {
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
	text := fmt.Sprintf("SPEC %s is violated: %s\n%s\n%s:\n%s\nreplay: %s",
		p.rule.clause(), p.rule.says, what, when, history, p.suite.replay(p.Name()))
	p.said = append(p.said, text)
	return text
}

// panic panics with a message for the user. The message explains why the process has ended, if the
// implementation does not recover from the panic.
func (p *probe) panic(who string) {
	panic(fmt.Sprintf(`leasetest: %s panics, as rule %s wants it.
If that ended the process, nothing recovered from it, and SPEC %s is violated: %s
The results of the other rules: %s -run '%s' -skip '%s'`,
		who, p.rule.name, p.rule.clause(), p.rule.says, goTest(), pattern(strings.TrimSuffix(p.Name(), "/"+p.rule.name)), pattern(p.Name())))
}

// need ends the rule with a failure if err is not nil.
func (p *probe) need(err error, what string) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// checkMade checks the value v that a constructor of the test has returned. If v is nil or a nil
// pointer, checkMade ends the rule with a failure. If v lacks a method that the rule needs,
// checkMade skips the rule.
func (p *probe) checkMade(v any, by string) {
	p.Helper()
	if r := reflect.ValueOf(v); v == nil || r.Kind() == reflect.Pointer && r.IsNil() {
		p.TB.Fatalf("leasetest: %s of this test returned nil; rule %s was not checked", by, p.rule.name)
	}
	p.Can |= methodsOf(v)
	if missing := p.rule.needs &^ p.Can; missing != 0 && by != "Options.Authority" {
		p.suite.skip(p.TB, p.rule, missing)
	}
}

// pass sleeps for d. In a bubble, it then waits until all other goroutines of the bubble are
// blocked.
func (p *probe) pass(d time.Duration) {
	p.Sleep(d)
	if p.Bubble {
		synctest.Wait()
	}
}

// id returns a random lease ID.
func (p *probe) id() (id lease.ID) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	binary.BigEndian.PutUint64(id[:8], p.rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], p.rand.Uint64()|1) // never zero
	return id
}
