package leasetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// authorityLinkRules check an authority whose connection to its server is disturbed.
var authorityLinkRules = []rule{
	{"A3/a-request-that-got-no-answer-is-carried-out-once-at-most", "a request of which a message is lost is not refused, is carried out at most once, and is carried out if it is granted", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		id := p.id()
		taken := []lease.Request{acquire(id, p.D)}
		for _, c := range []struct {
			before  []lease.Request
			request lease.Request
		}{
			{nil, acquire(id, p.D)},
			{append(taken, release(id)), acquire(id, p.D)},
			{taken, acquire(id, p.D)},
			{taken, renew(id)},
			{taken, release(id)},
			{taken, lease.Request{Action: lease.ActionChange, ID: id, Proposed: p.id()}},
			{taken, lease.Request{Action: lease.ActionBreak, ID: id, Period: lease.Grace(0)}},
			{taken, lease.Request{Action: lease.ActionRead}},
		} {
			if p.lacksAbility(c.request) {
				continue
			}
			for _, loss := range losses {
				for nth := range l.messages() {
					p.history.printf("== %s, and in message %d %s", requestText(c.request), nth, loss.what)
					name := fmt.Sprint(p.name, "/", p.id())
					a.mustGrant(name, c.before...)
					if c.request.Action == lease.ActionRenew {
						p.pass(p.D / 2) // so that the effect of a renewal is visible
					}
					before := a.read(name)
					l.disturb(nth, loss.with)
					sent := time.Now()
					_, err := a.Do(p.ctx, name, c.request)
					l.restore()
					a.requireOnce(c.request, before, a.read(name), sent, err)
				}
			}
		}
	}},
	{"A3/a-request-that-got-no-answer-is-not-decided-again", "a request that was carried out and whose answer is lost is neither carried out again nor refused, whatever another client does before the loss is noticed", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		intruder := a.intruder()
		id, other := p.id(), p.id()
		for _, c := range []struct {
			request, next lease.Request // next is sent after request was carried out
		}{
			{acquire(id, p.D), release(id)},
			{acquire(id, p.D), lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}},
			{release(id), acquire(other, p.D)},
			{lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, release(other)},
			{lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, acquire(other, p.D)},
		} {
			if p.lacksAbility(c.request) || p.lacksAbility(c.next) {
				continue
			}
			for nth := range l.messages() {
				p.history.printf("== %s, then %s, and the answer to message %d is lost", requestText(c.request), requestText(c.next), nth)
				name := fmt.Sprint(p.name, "/", p.id())
				a.mustGrant(name, acquire(id, p.D))
				before := a.read(name)
				var carriedOut atomic.Bool
				l.disturb(nth, func(_ context.Context, send func() error) error {
					if err := send(); err != nil {
						return err
					}
					carriedOut.Store(intruder.do(name, c.next) == nil)
					return errLost
				})
				_, err := a.Do(p.ctx, name, c.request)
				l.restore()
				after := a.read(name)
				if !carriedOut.Load() {
					continue
				}
				// An acquire may be refused. For example, if the disturbed message only read the lease, the
				// acquire is decided after the intruder has changed the lease.
				again := after.Record.Epoch > before.Record.Epoch+1
				refused := c.request.Action != lease.ActionAcquire && lease.CodeOf(err).Refusal()
				if again || refused {
					p.Errorf("%s gets %v, and leaves %s, from %s", requestText(c.request), err, outcomeText(after.Record, nil), outcomeText(before.Record, nil))
				}
			}
		}
	}},
	{"A5/late-messages-make-nothing-more-certain", "if a request or its answer is late, MinRemaining of this answer and of the next ones is no more than what is left, and MaxRemaining is no less", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		id := p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			for what, late := range p.lateness(p.D / 3) {
				for nth := range l.messages() {
					p.history.printf("== %s, and in message %d %s", requestText(req), nth, what)
					name := fmt.Sprint(p.name, "/", p.id())
					a.mustGrant(name, acquire(id, p.D))
					l.disturb(nth, late)
					began := time.Now()
					res, err := a.bare.Do(p.ctx, name, req) // the delay is on purpose, so it is not measured
					l.restore()
					sent, answered := l.times()
					p.history.printf("answered: %s", answerText(res, err))
					if err != nil {
						continue // a client may give up sooner
					}
					for _, c := range []struct {
						what  string
						asked time.Time
						res   lease.Result
					}{{"its answer", began, res}, {"a read", time.Now(), a.read(name)}} {
						if most := answered.Add(p.D + p.Slack).Sub(c.asked); c.res.MinRemaining > most {
							p.Errorf("MinRemaining in %s is %v, and at most %v are left", c.what, c.res.MinRemaining, most)
						}
						if least := time.Until(sent.Add(p.D - p.Slack)); !c.res.Now.IsZero() && c.res.MaxRemaining() < least {
							p.Errorf("MaxRemaining in %s is %v, and at least %v are left", c.what, c.res.MaxRemaining(), least)
						}
					}
				}
			}
		}
	}},
	{"A5/a-late-read-tells-what-is-left", "MaxRemaining in the answer to a read covers what is left of a lease that another client acquired after the read was sent", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		intruder := a.intruder()
		for nth := range l.messages() {
			p.history.printf("== message %d of a read is late, and the lease is acquired meanwhile", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			var res lease.Result
			var err error
			acquired := false
			var earliest time.Time // the lease ends at this time at the earliest
			l.during(nth, holdRequest, func() {
				res, err = a.bare.Do(p.ctx, name, lease.Request{Action: lease.ActionRead}) // the delay is on purpose, so it is not measured
			}, func(func()) {
				p.pass(p.D / 5)
				earliest = time.Now().Add(p.D)
				acquired = intruder.do(name, acquire(p.id(), p.D)) == nil
			})
			if !acquired || err != nil || !res.Record.State.Locked() {
				continue
			}
			if least := time.Until(earliest) - p.Slack; !res.Now.IsZero() && res.MaxRemaining() < least {
				p.Errorf("MaxRemaining in the answer to the read is %v, and at least %v are left", res.MaxRemaining(), least)
			}
		}
	}},
	{"M6/a-late-break-ends-no-later", "a later break with a shorter period lets the lease end no later than the first, though its request or its answer is late", hasConnectAuthority | CanBreak | CanShowRecords, func(p *tester) {
		a, l := p.linkedAuthority()
		for what, late := range p.lateness(p.D / 2) {
			for nth := range l.messages() {
				p.history.printf("== in message %d of the second break %s", nth, what)
				name := fmt.Sprint(p.name, "/", p.id())
				a.mustGrant(name, acquire(p.id(), p.D))
				a.mustGrant(name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D)})
				before := a.read(name)
				l.disturb(nth, late)
				_, err := a.bare.Do(p.ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D * 3 / 4)}) // the delay is on purpose, so it is not measured
				l.restore()
				p.history.printf("answered: %v", err)
				if after := a.read(name); after.Record.Until.After(before.Record.Until.Add(p.Slack)) {
					p.Errorf("the lease ends at %v after the second break, and before it ended at %v", after.Record.Until, before.Record.Until)
				}
			}
		}
	}},
	{"A5/a-later-break-is-no-more-certain", "if the answer to a break was late, MinRemaining after a later break is no more than what the first break leaves", hasConnectAuthority | CanBreak, func(p *tester) {
		a, l := p.linkedAuthority()
		for nth := range l.messages() {
			p.history.printf("== the answer to message %d of the first break is late", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			a.mustGrant(name, acquire(p.id(), p.D))
			l.disturb(nth, p.lateness(p.D / 2)["the answer is late"])
			_, err := a.bare.Do(p.ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D)}) // the delay is on purpose, so it is not measured
			l.restore()
			p.history.printf("answered: %v", err)
			if err != nil {
				continue
			}
			_, answered := l.times()
			end := answered.Add(p.D + p.Slack) // the latest possible end of the lease
			for _, req := range []lease.Request{{Action: lease.ActionBreak, Period: lease.Grace(p.D * 3 / 4)}, {Action: lease.ActionRead}} {
				asked := time.Now()
				if res, err := a.Do(p.ctx, name, req); err == nil && res.MinRemaining > end.Sub(asked) {
					p.Errorf("MinRemaining after %s is %v, and at most %v are left", requestText(req), res.MinRemaining, end.Sub(asked))
				}
			}
		}
	}},
	{"A2/another-request-between-two-messages", "an acquire or a renewal during which another client takes the lease takes nothing from that client", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		intruder := a.intruder()
		id, other := p.id(), p.id()
		for _, req := range []lease.Request{acquire(id, p.D), renew(id)} {
			for nth := range l.messages() {
				p.history.printf("== %s, and before message %d another client takes the lease", requestText(req), nth)
				name := fmt.Sprint(p.name, "/", p.id())
				a.mustGrant(name, acquire(id, p.D))
				if req.Action == lease.ActionAcquire {
					a.mustGrant(name, release(id))
				}
				var err error
				taken := false
				l.during(nth, holdRequest, func() { _, err = a.bare.Do(p.ctx, name, req) }, func(func()) {
					_ = intruder.do(name, release(id))
					taken = intruder.do(name, acquire(other, p.D)) == nil
				})
				p.history.printf("answered: %v", err)
				if !taken {
					continue
				}
				if _, refused := a.Do(p.ctx, name, renew(other)); refused != nil {
					p.Errorf("the grant to another client is gone after %s, which was sent before: %v", requestText(req), refused)
				}
			}
		}
	}},
	{"A4/no-answer-from-before-the-call", "a read is not answered with what another read saw before the call, even if that read has not returned", hasConnectAuthority, func(p *tester) {
		a, l := p.linkedAuthority()
		for nth := range l.messages() {
			p.history.printf("== the answer to message %d of an earlier read is late", nth)
			name := fmt.Sprint(p.name, "/", p.id())
			id := p.id()
			a.mustGrant(name, acquire(id, p.D))
			l.during(nth, holdAnswer, func() {
				_, _ = a.bare.Do(p.ctx, name, lease.Request{Action: lease.ActionRead}) // the delay is on purpose, so it is not measured
			}, func(end func()) {
				time.AfterFunc(p.D/8, end)
				_, released := a.bare.Do(p.ctx, name, release(id)) // the release may wait for the read
				seen, err := a.bare.Do(p.ctx, name, lease.Request{Action: lease.ActionRead})
				p.need(err, "a read")
				if released == nil && seen.Record.State != lease.Available {
					p.Errorf("a read after the release shows %v", seen.Record.State)
				}
			})
		}
	}},
}

func (a authorityTester) read(name string) lease.Result {
	a.Helper()
	res, err := lease.Inspect(a.ctx, a, name)
	a.need(err, "a read")
	return res
}

// requireOnce requires that the authority executed a request at most once, even if a message of the request
// was lost. The method compares a read before the request with a read after the request.
func (a authorityTester) requireOnce(req lease.Request, before, after lease.Result, sent time.Time, err error) {
	a.Helper()
	was, is := before.Record, after.Record
	if was.ID.IsZero() && was.State.Locked() { // the authority does not show the ID, so infer it from the request
		was.ID, was.Duration = req.ID, a.D
		if req.Action == lease.ActionAcquire {
			was.ID = req.Proposed
		}
	}
	next, _ := lease.Step(was, req, before.Now)
	state := func(r lease.Record) lease.State {
		if after.Now.IsZero() {
			return r.State
		}
		return r.At(after.Now).State
	}
	granted := is.State == state(next) && (is.Epoch == next.Epoch || epochMayRise(before.Record))
	nothing := is.State == state(was) && (is.Epoch == was.Epoch || epochMayRise(before.Record))
	half := is.State == state(next) && is.Epoch == was.Epoch // some authorities need two steps, of which one may be missing
	left := a.D - time.Since(sent) - a.Slack
	switch {
	case lease.CodeOf(err).Refusal():
		a.Errorf("%s gets the refusal %v, and was not decided", requestText(req), err)
	case lease.CodeOf(err) == lease.ErrUnsent && !nothing:
		a.Errorf("%s gets %v, and leaves %s, from %s", requestText(req), err, outcomeText(is, nil), outcomeText(before.Record, nil))
	case err == nil && !granted:
		a.Errorf("%s is granted, and leaves %s", requestText(req), outcomeText(is, nil))
	case err == nil && req.Action == lease.ActionRenew && !after.Now.IsZero() && after.MaxRemaining() < left:
		a.Errorf("%s is granted, and %v are left; the lease must last for at least %v", requestText(req), after.MaxRemaining(), left)
	case err != nil && !granted && !nothing && !half:
		a.Errorf("%s leaves %s, from %s", requestText(req), outcomeText(is, nil), outcomeText(before.Record, nil))
	}
}
