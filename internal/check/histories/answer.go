package histories

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// An answer is a request and the answer of an authority to the request.
type answer struct {
	call, ret time.Time
	req       lease.Request
	res       lease.Result
	err       error
}

func (h *History) answer(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, a)
}

// answered checks each answer against the history, unless the outcome of its request is unknown. The record
// in a grant or a refusal must have been current at some time between the call and the answer. In a store
// without a clock, a grant must also have been written within that time.
func (c *checker) answered(seen []Exchange, answers []answer) {
	byReturn := slices.DeleteFunc(slices.Clone(seen), func(s Exchange) bool { return s.Snap.Version == "" })
	slices.SortFunc(byReturn, func(a, b Exchange) int { return a.Return.Compare(b.Return) })
	answers = slices.Clone(answers)
	slices.SortFunc(answers, func(a, b answer) int { return a.call.Compare(b.call) })
	latest, i := int64(-1), 0 // the latest position that was returned before the call
	for _, a := range answers {
		for ; i < len(byReturn) && byReturn[i].Return.Before(a.call); i++ {
			latest = max(latest, position(byReturn[i]))
		}
		if a.err != nil && !lease.CodeOf(a.err).Refusal() || a.res.Now.IsZero() {
			continue
		}
		if !c.wasSo(a, latest) {
			c.bad("%v of %s, proposing %s, was answered with %v, %v: that was not so in the %v before the answer",
				a.req.Action, a.req.ID, a.req.Proposed, a.res.Record, a.err, a.ret.Sub(a.call))
		}
	}
}

// wasSo reports whether an answer fits a version that can have been current during the call. It cannot have
// been if a newer version was returned before the call.
func (c *checker) wasSo(a answer, latest int64) bool {
	writes := !c.OwnClock && a.err == nil && (a.req.Action == lease.ActionAcquire || a.req.Action == lease.ActionRenew)
	for v, r := range c.records {
		if 2*v+1 < latest || !c.shows(a.res, r) {
			continue
		}
		made, ok := c.made[v]
		if ok && made.Call.After(a.ret) {
			continue
		}
		if !writes || ok && !made.Call.Before(a.call) && !made.Return.After(a.ret) {
			return true
		}
	}
	return false
}

// shows reports whether a result contains r as it was written, or r after its end.
func (c *checker) shows(res lease.Result, r lease.Record) bool {
	shown := withoutFloor(res.Record)
	if c.OwnClock {
		return shown == r || shown == r.At(res.Now)
	}
	shown.Until = time.Time{}
	if r.State == lease.Breaking || r.State == lease.Leased && r.Duration != lease.Infinite {
		if r.Until = res.Now; shown == r.At(res.Now) {
			return true
		}
		r.Until = time.Time{}
	}
	return shown == r
}
