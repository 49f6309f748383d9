package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestAuthority tests an authority. It checks the clauses M, R and A of SPEC.md, with one subtest
// for each rule and for each scenario and cell of [Vectors]. It also checks those rules of the
// clauses S that apply to an authority.
//
// Each subtest calls newAuthority to get an authority. The authority must have no record yet for
// the lease names that the subtest uses. The function newAuthority runs inside the bubble of the
// subtest, if there is one, and may register cleanup functions on t. Without [Options.Bubble] the
// function newAuthority must be safe for concurrent use by multiple goroutines.
func TestAuthority(t *testing.T, newAuthority func(t testing.TB) lease.Authority, o *Options) {
	must(newAuthority != nil, "TestAuthority: newAuthority must not be nil")
	s := &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: newAuthority}
	s.test(t)
}

var authorityRules = slices.Concat(machineRules, authorityRecordRules, answerRules, stateRules, contentionRules, certaintyRules, authorityNameRules, authorityWatchRules, authorityListRules)

func allAuthorityRules() []rule { return slices.Concat(authorityRules, vectorRules(false)) }

// An authorityProbe is an authority under test, together with the rule that tests it.
type authorityProbe struct {
	*probe
	lease.Authority                 // records its calls in the history
	bare            lease.Authority // without the history
}

func (p *probe) authority() authorityProbe {
	a := p.suite.newAuthority(p.TB)
	p.checkMade(a, "newAuthority")
	if m, ok := a.(*stepper); ok { // a stepper writes the history itself, with the times of the machine
		m.history = p.history
		return authorityProbe{p, a, a}
	}
	return authorityProbe{p, p.history.authority(a), a}
}

// ask makes a request for the lease of the probe.
func (a authorityProbe) ask(req lease.Request) (lease.Result, error) {
	return a.Do(a.ctx, a.name, req)
}

// grant makes a request and requires that it is granted.
func (a authorityProbe) grant(req lease.Request) lease.Result {
	a.Helper()
	res, err := a.ask(req)
	if err != nil {
		a.Fatalf("%s must be granted: %v", requestText(req), err)
	}
	return res
}

// refuse makes a request and requires that the authority refuses it with the given code.
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

// lacksAbility reports whether a request needs an ability that the authority lacks.
func (p *probe) lacksAbility(req lease.Request) bool {
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

// sameRecords reports whether two records are equal. If the authority has no clock, sameRecords
// ignores the ends of the leases, because each read may return a different end.
func (p *probe) sameRecords(a, b lease.Record) bool {
	if !p.can(CanTellTime) && a.Until.IsZero() == b.Until.IsZero() {
		a.Until = b.Until
	}
	return a == b
}
