package leasetest

import (
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A world is the authority that the leases of a rule share. If the leases lack CanUseAuthority, the
// suite has no access to their authority.
type world struct {
	*probe
	direct lease.Authority // the authority without faults and history; nil without CanUseAuthority
}

// world returns the world of the rule.
func (p *probe) world() *world {
	switch {
	case !p.can(CanUseAuthority):
		return &world{p, nil}
	case p.Options.Authority == nil:
		return p.worldOver(memory.New(nil))
	}
	a := p.Options.Authority(p.TB)
	p.checkMade(a, "Options.Authority")
	return &world{p, a}
}

// worldOver returns a world over the given store. It needs CanUseAuthority.
func (p *probe) worldOver(s lease.Store) *world { return &world{p, lease.NewAuthority(s)} }

// gate returns a gate that is opened at the end of the rule.
func (p *probe) gate() *leasefault.Gate {
	g := leasefault.NewGate()
	p.gates = append(p.gates, g)
	return g
}

// now returns the current record at the authority. It needs CanUseAuthority.
func (w *world) now() lease.Record {
	w.Helper()
	res, err := lease.Inspect(w.ctx, w.direct, w.name)
	w.need(err, "a read of the lease by the suite")
	w.history.printf("== %s", outcomeText(res.Record, nil))
	return res.Record
}

// unlocked requires that the lease is free. If the suite cannot read the record, unlocked requires
// that another holder can acquire the lease.
func (w *world) unlocked(when string) {
	w.Helper()
	if w.direct == nil {
		c := w.join(Holder{Owner: "another, " + when})
		c.acquire()
		w.need(c.release(), "release")
	} else if r := w.now(); r.State.Locked() {
		w.Errorf("%s the lease is %s", when, outcomeText(r, nil))
	}
}

// answer lets f change the answers of the authority. The history contains every changed answer.
func (w *world) answer(f func(req lease.Request, res *lease.Result, err *error)) {
	w.direct = leasefault.Answer(w.direct, func(req lease.Request, res *lease.Result, err *error) {
		was := answerText(*res, *err)
		f(req, res, err)
		if is := answerText(*res, *err); is != was {
			w.history.printf("== the suite changes the answer to %s: %s", requestText(req), is)
		}
	})
}

// revoke breaks the lease with the given period, as an operator would.
func (w *world) revoke(period time.Duration) {
	w.Helper()
	w.history.printf("== a third party breaks it, period %v", period)
	if w.Options.Revoke != nil {
		w.Options.Revoke(w.TB, w.name, period)
		return
	}
	_, err := lease.Break(w.ctx, w.direct, w.name, lease.Grace(period))
	w.need(err, "a break by a third party")
}
