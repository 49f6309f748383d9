package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestAuthority tests an authority: it checks the clauses M, R and A of SPEC.md, with a subtest for each
// rule and for each scenario and cell of [Vectors]. The function newAuthority
// returns an authority on which the names of the subtest were never used; it is called in
// the subtest, and its bubble, and may register a clean-up on t. Without [Options.Bubble] it
// is called by several goroutines.
func TestAuthority(t *testing.T, newAuthority func(t testing.TB) lease.Authority, o *Options) {
	must(newAuthority != nil, "TestAuthority: newAuthority must not be nil")
	s := &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: newAuthority}
	s.test(t)
}

var authorityRules = slices.Concat(machineRules, authorityRecordRules, answerRules, stateRules, contentionRules, certaintyRules, authorityNameRules, authorityWatchRules, authorityListRules)

func allAuthorityRules() []rule { return slices.Concat(authorityRules, vectorRules(false)) }

// An authorityProbe is an authority under a rule.
type authorityProbe struct {
	*probe
	lease.Authority                 // with its calls in the history
	bare            lease.Authority // as it was made
}

func (p *probe) authority() authorityProbe {
	a := p.suite.newAuthority(p.TB)
	p.made(a, "newAuthority")
	if m, ok := a.(*stepper); ok { // its history is of times that it is told
		m.history = p.history
		return authorityProbe{p, a, a}
	}
	return authorityProbe{p, p.history.authority(a), a}
}

// ask makes a request about the lease of the probe.
func (a authorityProbe) ask(req lease.Request) (lease.Result, error) {
	return a.Do(a.ctx, a.name, req)
}

// grant makes a request that must be granted.
func (a authorityProbe) grant(req lease.Request) lease.Result {
	a.Helper()
	res, err := a.ask(req)
	if err != nil {
		a.Fatalf("%s must be granted: %v", requestText(req), err)
	}
	return res
}

// refuse makes a request that must be refused with code.
func (a authorityProbe) refuse(req lease.Request, code lease.Code) lease.Result {
	a.Helper()
	res, err := a.ask(req)
	if lease.CodeOf(err) != code {
		a.Fatalf("%s must be refused as %v: %v", requestText(req), code, err)
	}
	return res
}

func (a authorityProbe) inspect() lease.Result {
	a.Helper()
	return a.grant(lease.Request{Action: lease.ActionRead})
}

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d}
}

func renew(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRenew, ID: id} }

func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

// cannot reports whether a request needs what the authority lacks.
func (p *probe) cannot(req lease.Request) bool {
	switch req.Action {
	case lease.ActionBreak:
		return !p.can(CanBreak)
	case lease.ActionChange:
		return !p.can(CanChange)
	case lease.ActionWrite:
		return !p.can(CanUse)
	}
	return false
}

// same compares two records; without a clock of its own, an authority may move the end.
func (p *probe) same(a, b lease.Record) bool {
	if !p.can(CanTellTime) && a.Until.IsZero() == b.Until.IsZero() {
		a.Until = b.Until
	}
	return a == b
}
