package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestAuthority tests an authority against the M, R and A clauses of SPEC.md, and against those S clauses
// that apply to authorities. It runs one subtest for each rule, and one for each scenario and table cell in
// [Vectors]. Each subtest calls newAuthority in the same way as [TestStore] calls newStore.
func TestAuthority(t *testing.T, newAuthority func(t testing.TB) lease.Authority, o *Options) {
	must(newAuthority != nil, "TestAuthority: newAuthority must not be nil")
	s := &suite{rules: allAuthorityRules(), options: o.withDefaults(), newAuthority: newAuthority}
	s.test(t)
}

var authorityRules = slices.Concat(authorityWorks, machineRules, authorityRecordRules, answerRules, stateRules, contentionRules, certaintyRules, authorityLinkRules, authorityNameRules, authorityWatchRules, authorityListRules)

func allAuthorityRules() []rule { return slices.Concat(authorityRules, vectorRules(false)) }

// authorityWorks is checked first, because all other rules would fail if the authority could not connect.
var authorityWorks = []rule{
	{"A1/it-works-at-all", "a lease is acquired and released", 0, func(p *tester) {
		a := p.authority()
		id := a.id()
		_, err := a.Do(a.ctx, a.name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "leasetest", Duration: a.D})
		a.need(err, "acquire")
		_, err = a.Do(a.ctx, a.name, lease.Request{Action: lease.ActionRelease, ID: id})
		a.need(err, "release")
	}},
}

// An authorityTester combines an authority under test with the rule that tests it.
type authorityTester struct {
	*tester
	lease.Authority                 // records its calls in the history
	bare            lease.Authority // the authority without the history
}

// held returns an authority at which the lease of the rule is leased to the returned ID, for p.D.
func (p *tester) held() (authorityTester, lease.ID) {
	p.Helper()
	a, id := p.authority(), p.id()
	a.grant(acquire(id, p.D))
	return a, id
}

func (p *tester) authority() authorityTester {
	a := p.suite.newAuthority(p.TB)
	p.checkMade(a, "newAuthority")
	if m, ok := a.(*stepper); ok { // a stepper writes the history itself, with the times that it passes to the machine
		m.history = p.history
		return authorityTester{p, a, a}
	}
	return authorityTester{p, p.history.authority(a), a}
}

func (a authorityTester) corrupt(name string) {
	a.history.printf("the test corrupts the record of %q", name)
	a.Options.Authority.Corrupt(a.tester.TB, a.bare, name)
}

func (a authorityTester) ask(req lease.Request) (lease.Result, error) {
	return a.Do(a.ctx, a.name, req)
}

func (a authorityTester) grant(req lease.Request) lease.Result {
	a.Helper()
	res, err := a.ask(req)
	if err != nil {
		a.Fatalf("%s must be granted: %v", requestText(req), err)
	}
	return res
}

// refuse sends a request that the authority must refuse with the given code.
func (a authorityTester) refuse(req lease.Request, code lease.Code) lease.Result {
	a.Helper()
	res, err := a.ask(req)
	if lease.CodeOf(err) != code {
		a.Fatalf("%s must be refused as %v: %v", requestText(req), code, err)
	}
	return res
}

func (a authorityTester) inspect() lease.Result {
	a.Helper()
	return a.grant(lease.Request{Action: lease.ActionRead})
}

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d}
}

func renew(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRenew, ID: id} }

func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

// lacksAbility reports whether a request needs an ability that the authority lacks.
func (p *tester) lacksAbility(req lease.Request) bool {
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

// The method sameRecords reports whether two records of a lease are equal. If the authority has no clock, the
// ends of the two records may differ, because the authority estimates the end of the lease again at each read.
// If neither record has an ID, the later record may have a higher epoch (see epochMayRise).
func (p *tester) sameRecords(earlier, later lease.Record) bool {
	if !p.can(CanTellTime) && earlier.Until.IsZero() == later.Until.IsZero() {
		earlier.Until = later.Until
	}
	if epochMayRise(earlier) && later.ID.IsZero() {
		earlier.Epoch = max(earlier.Epoch, later.Epoch)
	}
	return earlier == later
}

// The function epochMayRise reports whether the epoch of a record can rise without a grant. It can rise if
// the record has no ID, because the store may have deleted such a record. For a name without a record, a
// store shows an epoch at least as high as the epochs of all deleted records, and some stores compute this
// epoch from their clocks.
func epochMayRise(r lease.Record) bool { return r.ID.IsZero() }

// answerRules check single answers of an authority.
var answerRules = []rule{
	{"A1/refused-is-a-code", "a refusal is an OpError around a refusing Code, and shows the record that decided", 0, func(p *tester) {
		a, id := p.held()
		res, err := a.ask(acquire(p.id(), p.D))
		op := (*lease.OpError)(nil)
		isRefusal := errors.Is(err, lease.ErrHeldByOther) && lease.CodeOf(err).Refusal()
		if !isRefusal || !errors.As(err, &op) || op.Op != "acquire" || op.Name != p.name {
			p.Errorf("the refusal is %v", err)
		}
		if p.can(CanShowRecords) && (res.Record.ID != id || res.Record.State != lease.Leased || res.Now.IsZero()) {
			p.Errorf("the refusal shows %s at %s", outcomeText(res.Record, nil), timeText(res.Now))
		}
	}},
	{"A1/the-cause-of-a-context-is-no-refusal", "a request whose context ends, before the call or during it, does not get the Code of the context's cause", 0, func(p *tester) {
		a, id := p.authority(), p.id()
		requests := []lease.Request{acquire(id, p.D), renew(id), {Action: lease.ActionRead}}
		// If a lease is released or lost, the contexts of its holder end with these causes.
		causes := []error{lease.ErrReleased, &lease.LostError{Name: "another", Reason: lease.ErrBroken, Err: context.Canceled}}
		a.grant(requests[0])
		began := time.Now()
		a.grant(requests[0])
		took := min(time.Since(began), p.Unit/2)
		for _, cause := range causes {
			ended, cancel := context.WithCancelCause(p.ctx)
			cancel(cause)
			for i, req := range requests {
				_, err := a.Do(ended, p.name, req)
				p.requireNoCode(req, err, "before", cause)
				for j := range 20 {
					ctx := p.endingBecause(cause, took*time.Duration(j)/10, i+j)
					_, err := a.Do(ctx, p.name, req)
					p.requireNoCode(req, err, "during", cause)
					<-ctx.Done()
				}
			}
		}
	}},
	{"A7/limits-are-kept", "a duration or a period out of the stated limits is refused at the grant; an infinite duration is within them, and an infinite period is not", 0, func(p *tester) {
		a := p.authority()
		l := p.Limits
		if l.MinDuration > 1 {
			a.refuse(acquire(p.id(), l.MinDuration-1), lease.ErrDuration)
		}
		if l.MaxDuration > 0 {
			a.refuse(acquire(p.id(), l.MaxDuration+1), lease.ErrDuration)
			a.refuse(acquire(p.id(), lease.Infinite-1), lease.ErrDuration)
		}
		if l.MaxPeriod > 0 && p.can(CanBreak) {
			a.refuse(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(l.MaxPeriod + 1)}, lease.ErrPeriod)
			a.refuse(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(lease.Infinite)}, lease.ErrPeriod)
		}
		if p.can(CanServeOldVersions) && (l.MinDuration > oldDuration || l.MaxDuration > 0 && l.MaxDuration < oldDuration) {
			old := acquire(p.id(), p.D)
			old.Version = lease.Version20110818
			a.refuse(old, lease.ErrDuration) // the authority ignores the duration in a request of an old version
		}
		if state := a.inspect().Record.State; state != lease.Available {
			p.Errorf("what was refused left the lease %v", state)
		}
		if p.can(CanBeInfinite) {
			a.grant(acquire(p.id(), lease.Infinite))
		} else {
			a.grant(acquire(p.id(), p.D))
		}
	}},
	{"A7/the-break-of-an-infinite-lease-lasts-for-the-longest-period", "no other limit shortens the break of an infinite lease, at the break or at a later look", CanBreak | CanBeInfinite, func(p *tester) {
		a := p.authority()
		long := 100 * p.D
		if p.Limits.MaxPeriod > 0 {
			long = p.Limits.MaxPeriod
		}
		id := p.id()
		a.grant(acquire(id, lease.Infinite))
		sent := time.Now()
		a.grant(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(long)})
		for _, res := range []lease.Result{a.inspect(), a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther), a.inspect()} {
			// Some authorities return no record when they refuse a request.
			if !res.Now.IsZero() && res.MaxRemaining()+time.Since(sent)+p.Slack < long {
				p.Errorf("%v remain of an infinite lease that was broken with period %v", res.MaxRemaining(), long)
			}
		}
		a.grant(release(id))
	}},
	{"A7/a-record-beyond-the-limits-ends-after-first-sight", "a record that claims more than the limits ends the longest time after the first request that sees it, whatever that request and its outcome; a read does not count", hasPut | exactTime, func(p *tester) {
		a := p.authority()
		for i, c := range p.excessiveRecords() {
			for j, req := range p.firstRequests(c.ID) {
				if p.lacksAbility(req) {
					continue
				}
				name := fmt.Sprint(p.name, i, j)
				do := func(req lease.Request) lease.Result {
					res, _ := a.Do(p.ctx, name, req)
					return res
				}
				read := lease.Request{Action: lease.ActionRead}
				now := do(read).Now
				r := c.Record
				if !r.Until.IsZero() {
					r.Until = now.Add(c.claims)
				}
				p.history.printf("== the record of %q becomes %s, %s", name, outcomeText(r, nil), c.what)
				p.Options.Authority.Put(p.TB, a.bare, name, r)
				if sure := do(read).MinRemaining; sure > c.lasts {
					p.Errorf("%s: a read shows that %v are certain, and another request may end it after %v", c.what, sure, c.lasts)
				}
				if c.lasts < c.claims {
					p.pass(c.lasts / 2)
				}
				if first := do(req); first.MinRemaining > c.lasts {
					p.Errorf("%s: after %s, %v are certain, and the longest time is %v", c.what, requestText(req), first.MinRemaining, c.lasts)
				}
				p.pass(c.lasts / 2)
				_ = do(acquire(p.id(), p.D)) // a later request does not restart the countdown
				p.pass(c.lasts - c.lasts/2 - 1)
				if !do(read).Record.State.Locked() {
					p.Errorf("%s: it was first seen by %s, and has ended before %v have passed", c.what, requestText(req), c.lasts)
				}
				p.pass(1)
				if do(read).Record.State.Locked() {
					p.Errorf("%s: it was first seen by %s, and has not ended after %v", c.what, requestText(req), c.lasts)
				}
			}
		}
	}},
	{"A7/an-expired-record-is-renewed-within-the-limits", "the renewal of an expired record whose duration is above the limits lasts for the longest duration", hasPut | exactTime, func(p *tester) {
		most := p.Limits.MaxDuration
		if most == 0 {
			return // no duration is above the limits
		}
		a, id := p.authority(), p.id()
		p.Options.Authority.Put(p.TB, a.bare, p.name, lease.Record{State: lease.Expired, ID: id, Duration: 10 * most, Epoch: 7})
		res, err := a.ask(renew(id))
		if err != nil {
			return // some authorities keep no record of an expired lease
		}
		if res.MinRemaining > most {
			p.Errorf("the renewal makes %v certain, and the longest duration is %v", res.MinRemaining, most)
		}
		p.pass(most - 1)
		a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
		p.pass(1)
		a.grant(acquire(p.id(), p.D))
	}},
	{"A8/a-break-tells-enough", "a break returns no less than the time for which the lease stays locked, also to a client that has not seen the lease, and no more than the lease can have left", CanBreak | hasAnotherAuthority, func(p *tester) {
		a := p.authority()
		for i, period := range []lease.Period{{}, lease.Grace(p.D / 4), lease.Grace(100 * p.D)} {
			name := fmt.Sprint(p.name, "/", i)
			began := time.Now()
			a.mustGrant(name, acquire(p.id(), p.D))
			p.pass(p.D / 2)
			earliest := began.Add(p.D)
			if i == 1 {
				earliest = time.Now().Add(p.D / 4)
			}
			for range 2 { // the second break finds a lease that is breaking, and changes nothing
				left, err := lease.Break(p.ctx, a.another(), name, period)
				if limit := p.Limits.MaxPeriod; i == 2 && limit > 0 && limit < 100*p.D && lease.CodeOf(err) == lease.ErrPeriod {
					break // the authority limits the period
				}
				// A client that has not seen the lease before may assume that the whole duration is still
				// left.
				if most := 2*p.D + p.Slack; left > most {
					p.Errorf("a break leaves %v, and at most %v can be left", left, most)
				}
				if least := time.Until(earliest) - p.Slack; err != nil || left < least {
					p.Errorf("a break leaves %v to a client that has not seen the lease, and at least %v are left: %v", left, least, err)
				}
			}
		}
	}},
}

// certaintyRules check MinRemaining and MaxRemaining.
var certaintyRules = []rule{
	{"A5/min-remaining-is-certain", "the ID stays locked for MinRemaining, counted from the time at which the request was sent", 0, func(p *tester) {
		a, id := p.authority(), p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			sent := time.Now()
			res := a.grant(req)
			if res.MinRemaining < 0 || res.MinRemaining > p.D {
				p.Fatalf("%v of a lease of %v are certain", res.MinRemaining, p.D)
			}
			p.pass(res.MinRemaining - time.Since(sent) - max(time.Nanosecond, p.Slack))
			a.refuse(acquire(p.id(), p.D), lease.ErrHeldByOther)
		}
	}},
	{"A5/min-remaining-of-every-answer-is-certain", "MinRemaining is never more than what is left of the lease, counted from the sending: of a read, a refusal, a change and a break too", 0, func(p *tester) {
		a := p.authority()
		id, other := p.id(), p.id()
		a.grant(acquire(id, p.D))
		end := time.Now().Add(p.D) // the lease ends at this time at the latest
		certain := func(req lease.Request, code lease.Code) {
			p.Helper()
			sent := time.Now()
			if res, err := a.ask(req); lease.CodeOf(err) != code || code == 0 && err != nil {
				p.Fatalf("%s: %v", requestText(req), err)
			} else if most := end.Sub(sent) + p.Slack; res.MinRemaining > most {
				p.Errorf("MinRemaining is %v in the answer to %s, and at most %v are left", res.MinRemaining, requestText(req), most)
			}
		}
		p.pass(p.D/4 + 1) // so that the remaining time is not a round number
		certain(lease.Request{Action: lease.ActionRead}, 0)
		certain(acquire(p.id(), p.D), lease.ErrHeldByOther)
		certain(renew(p.id()), lease.ErrIDMismatch)
		p.pass(time.Millisecond - 1) // a write may round the end up to a millisecond
		if p.can(CanChange) {
			certain(lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, 0)
			id = other
		}
		if !p.can(CanBreak) {
			return
		}
		// The broken lease ends at most p.D/4 after the answer to the break.
		breaks := lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}
		end = time.Now().Add(p.D / 4)
		certain(breaks, 0)
		end = time.Now().Add(p.D / 4)
		p.pass(p.D / 8)
		certain(lease.Request{Action: lease.ActionRead}, 0)
		certain(renew(id), lease.ErrBroken)
		certain(breaks, 0)
	}},
	{"A5/nothing-is-certain-if-unlocked", "for a lease that is not locked, MinRemaining and MaxRemaining are zero", 0, func(p *tester) {
		a, id := p.held()
		for _, res := range []lease.Result{a.grant(release(id)), a.inspect()} {
			if res.MinRemaining != 0 || res.MaxRemaining() != 0 {
				p.Errorf("of a released lease MinRemaining is %v and MaxRemaining is %v", res.MinRemaining, res.MaxRemaining())
			}
		}
	}},
}

// requireNoCode requires that a request whose context ended is not refused. Its error may have the code
// ErrUnsent.
func (p *tester) requireNoCode(req lease.Request, err error, when string, cause error) {
	p.Helper()
	if code := lease.CodeOf(err); code != 0 && code != lease.ErrUnsent {
		p.Errorf("%s, whose context ended %s the call because %q, gets the code %v: %v", requestText(req), when, cause, code, err)
	}
}

// An excessiveRecord is a record of a lease that may last longer than the limits of the authority allow.
type excessiveRecord struct {
	what string
	lease.Record
	claims time.Duration // how long the lease lasts according to the record
	lasts  time.Duration // how long the limits allow the lease to last
}

// The method excessiveRecords returns records of leases that last very long. Each of these leases lasts for
// ten times the longest of p.D, MaxDuration and MaxPeriod. If a limit is zero, the authority need not shorten
// the lease.
func (p *tester) excessiveRecords() []excessiveRecord {
	l := p.Limits
	claims := 10 * max(p.D, l.MaxDuration, l.MaxPeriod)
	record := func(state lease.State, d, limit time.Duration) excessiveRecord {
		e := excessiveRecord{"", lease.Record{State: state, ID: p.id(), Duration: d, Until: time.Unix(0, 0), Epoch: 7}, claims, claims}
		if limit > 0 {
			e.lasts = limit
		}
		e.what = fmt.Sprintf("a record that is %v for %v, with the duration %v", state, claims, d)
		return e
	}
	all := []excessiveRecord{record(lease.Leased, claims, l.MaxDuration)}
	if p.can(CanBreak) {
		all = append(all, record(lease.Breaking, claims, l.MaxDuration))
	}
	if p.can(CanBreak | CanBeInfinite) {
		all = append(all, record(lease.Breaking, lease.Infinite, l.MaxPeriod))
	}
	return all
}

// firstRequests returns requests for a lease whose current ID is id. These requests do not end the lease
// early.
func (p *tester) firstRequests(id lease.ID) []lease.Request {
	return []lease.Request{
		acquire(p.id(), p.D), renew(p.id()), renew(id), release(p.id()),
		{Action: lease.ActionWrite}, {Action: lease.ActionWrite, ID: id}, {Action: lease.ActionWrite, ID: p.id()},
		{Action: lease.ActionChange, ID: id, Proposed: id}, {Action: lease.ActionChange, ID: p.id(), Proposed: p.id()},
		{Action: lease.ActionBreak},
	}
}

var contentionRules = []rule{
	{"A2/one-acquire-wins", "of any number of concurrent acquires with different IDs, at any clients, one is granted, and the others are refused as held", 0, func(p *tester) {
		a := p.authority()
		clients := a.clients()
		for range 10 {
			var wins atomic.Int32
			var winner atomic.Pointer[lease.ID]
			ids := make([]lease.ID, 8)
			for i := range ids {
				ids[i] = p.id()
			}
			p.callConcurrently(len(ids), func(i int) {
				switch _, err := clients[i%len(clients)].ask(acquire(ids[i], p.D)); {
				case err == nil:
					wins.Add(1)
					winner.Store(&ids[i])
				case lease.CodeOf(err) != lease.ErrHeldByOther:
					p.Errorf("the acquire of a loser: %v", err)
				}
			})
			if n := wins.Load(); n != 1 {
				p.Fatalf("%d of %d acquires were granted", n, len(ids))
			}
			clients[len(clients)-1].grant(release(*winner.Load())) // any client that knows the ID can release
		}
	}},
	{"A2/holders-exclude-each-other", "between the grant of an acquire and its release no other is granted, at any client, and tokens rise from grant to grant", 0, func(p *tester) {
		clients := p.authority().clients()
		var holders atomic.Int32
		var newest atomic.Uint64
		ids := make([][]lease.ID, 4)
		for i := range ids {
			for range 25 {
				ids[i] = append(ids[i], p.id())
			}
		}
		p.callConcurrently(len(ids), func(i int) {
			a := clients[i%len(clients)]
			for _, id := range ids[i] {
				res, err := a.ask(acquire(id, 10*p.D))
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					p.Errorf("%d hold it", n)
				}
				if last := newest.Swap(res.Record.Epoch); last >= res.Record.Epoch {
					p.Errorf("epoch %d was granted after %d", res.Record.Epoch, last)
				}
				if _, err := a.ask(renew(id)); err != nil {
					p.Errorf("the holder's renewal: %v", err)
				}
				holders.Add(-1)
				if _, err := a.ask(release(id)); err != nil {
					p.Errorf("the holder's release: %v", err)
				}
			}
		})
	}},
	{"A2/break-races-renewal", "a concurrent renewal and break have the effect of one after the other", CanBreak, func(p *tester) {
		a := p.authority()
		for i := range 16 {
			id := p.id()
			a.grant(acquire(id, p.D))
			granted, _, code := a.race(i, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, renew(id))
			if state := a.inspect().Record.State; granted == 0 || state != lease.Broken {
				p.Fatalf("%d were granted, and after a break of period 0 the lease is %v", granted, state)
			}
			if code != 0 && code != lease.ErrBroken {
				p.Fatalf("the renewal after the break is refused as %v", code)
			}
		}
	}},
	{"A2/a-release-races-a-change", "of a concurrent release and change of the same ID, one is granted, and the other is refused because the ID has changed", CanChange, func(p *tester) {
		a := p.authority()
		for i := range 16 {
			id, other := p.id(), p.id()
			a.grant(acquire(id, p.D))
			granted, _, _ := a.race(i, release(id), lease.Request{Action: lease.ActionChange, ID: id, Proposed: other})
			if state := a.inspect().Record.State; granted != 1 || state != lease.Leased && state != lease.Available {
				p.Fatalf("%d were granted, and the lease is %v", granted, state)
			}
			_, _ = a.ask(release(other))
		}
	}},
	{"A2/a-renewal-races-an-acquire", "of a renewal of an expired lease and a concurrent acquire by another holder, one is granted", 0, func(p *tester) {
		a := p.authority()
		for i := range 16 {
			id, other := p.id(), p.id()
			d := max(p.Unit, p.Limits.MinDuration)
			a.grant(acquire(id, d))
			p.pass(d + p.Slack/4)
			began := time.Now()
			granted, sure, _ := a.race(i, renew(id), acquire(other, p.D))
			if granted == 0 || granted == 2 && time.Since(began) < sure { // a renewed lease may have expired in the meantime
				p.Fatalf("%d were granted", granted)
			}
			_, _ = a.ask(release(id))
			_, _ = a.ask(release(other))
		}
	}},
	{"A3/carried-out-once-at-most", "a request whose context ends meanwhile is carried out at most once, and exactly once if it is granted", 0, func(p *tester) {
		a, id := p.held()
		began := time.Now()
		first := a.grant(acquire(id, p.D)).Record.Epoch
		took := min(time.Since(began), p.Unit/2)
		granted, unknown := uint64(0), uint64(0)
		for i := range 60 {
			ctx := p.endingAfter(took*time.Duration(i)/30, i)
			switch _, err := a.Do(ctx, p.name, acquire(id, p.D)); {
			case err == nil:
				granted++
			case lease.CodeOf(err) == 0:
				unknown++
			case lease.CodeOf(err) == lease.ErrUnsent: // certainly not carried out
			default:
				p.Errorf("the holder's acquire is refused: %v", err)
			}
			<-ctx.Done()
		}
		p.pass(p.D / 2) // until all requests have arrived
		if n := a.inspect().Record.Epoch - first; n < granted || n > granted+unknown {
			p.Errorf("%d requests were granted, %d have an unknown outcome, and %d were carried out", granted, unknown, n)
		}
	}},
}

// race makes the requests concurrently, and starts them in reverse order if n is odd. It returns the number
// of grants, the lowest MinRemaining of the grants, and the code of one refusal. Other errors fail the rule.
func (a authorityTester) race(n int, requests ...lease.Request) (granted int, sure time.Duration, code lease.Code) {
	var mu sync.Mutex
	sure = lease.Infinite
	if n%2 == 1 {
		slices.Reverse(requests)
	}
	a.callConcurrently(len(requests), func(i int) {
		res, err := a.ask(requests[i])
		mu.Lock()
		defer mu.Unlock()
		switch refusal := lease.CodeOf(err); {
		case err == nil:
			granted, sure = granted+1, min(sure, res.MinRemaining)
		case refusal.Refusal():
			code = refusal
		default:
			a.Errorf("%s: %v", requestText(requests[i]), err)
		}
	})
	return granted, sure, code
}
