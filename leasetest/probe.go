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
	// What hangs, hangs only until the rule's time is over.
	bound := 100 * p.D
	if p.Bubble {
		bound = s.forever()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	p.ctx = ctx
	return p
}

// A probe is one rule while it is tested. Its errors name the clause that is violated, and show the
// history.
type probe struct {
	testing.TB
	Options
	suite     *suite
	rule      rule
	history   *history
	drawing   sync.Mutex
	rand      *rand.Rand
	began     time.Time
	ctx       context.Context
	name      string             // a lease that no other rule uses
	D         time.Duration      // the duration of its leases
	said      []string           // the violations that were reported; guarded by drawing
	lostTimes int                // lines of the history, with that; guarded by drawing
	gates     []*leasefault.Gate // to be opened before what waits at them is cleaned up
	over      chan struct{}      // closed when the rule is over, before leases are closed
	end       sync.Once          // of over
}

func (p *probe) Errorf(format string, args ...any) {
	p.Helper()
	p.TB.Errorf("%s", p.violation(fmt.Sprintf(format, args...)))
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Helper()
	p.TB.Fatalf("%s", p.violation(fmt.Sprintf(format, args...)))
}

// violation returns the message of a violation, with what happened since the one before.
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
	history, lostTimes := p.history.since(p.lostTimes)
	p.lostTimes = lostTimes
	text := fmt.Sprintf("SPEC %s is violated: %s\n%s\n%s:\n%s\nreplay: %s",
		p.rule.clause(), p.rule.says, what, when, history, p.suite.replay(p.Name()))
	p.said = append(p.said, text)
	return text
}

// panic is what a function of the suite does that is meant to panic. Should nothing recover
// from it, the process ends, and the value has the last word.
func (p *probe) panic(who string) {
	panic(fmt.Sprintf(`leasetest: %s panics, as rule %s wants it.
If that ended the process, nothing recovered from it, and SPEC %s is violated: %s
The results of the other rules: %s -run '%s' -skip '%s'`,
		who, p.rule.name, p.rule.clause(), p.rule.says, goTest(), pattern(strings.TrimSuffix(p.Name(), "/"+p.rule.name)), pattern(p.Name())))
}

// need ends the rule if err is not nil, because the rule cannot go on.
func (p *probe) need(err error, what string) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// made ends the rule if a constructor of the test returned nil, or a nil pointer. It skips the rule if
// what the constructor returned lacks a method that the rule needs.
func (p *probe) made(v any, by string) {
	p.Helper()
	if r := reflect.ValueOf(v); v == nil || r.Kind() == reflect.Pointer && r.IsNil() {
		p.TB.Fatalf("leasetest: %s of this test returned nil; rule %s was not checked", by, p.rule.name)
	}
	p.Can |= methodsOf(v)
	if missing := p.rule.needs &^ p.Can; missing != 0 && by != "Options.Authority" {
		p.suite.skip(p.TB, p.rule, missing)
	}
}

// pass passes time, and then waits until everything that was due has happened.
func (p *probe) pass(d time.Duration) {
	p.Sleep(d)
	if p.Bubble {
		synctest.Wait()
	}
}

// id draws a lease ID.
func (p *probe) id() (id lease.ID) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	binary.BigEndian.PutUint64(id[:8], p.rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], p.rand.Uint64()|1) // never zero
	return id
}
