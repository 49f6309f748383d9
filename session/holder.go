package session

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A belief is what a Session knows of the lease that it holds. It is never changed, only
// replaced, so that CheckAlive can read it without a lock.
type belief struct {
	id     lease.ID
	token  lease.Token
	sent   time.Time     // when the exchange that it rests on was sent
	budget time.Duration // how long after that it holds; lease.Infinite: until told otherwise

	doubtful bool // an earlier request to acquire the ID may yet arrive
}

// left is how much longer the belief holds: not at all if it is not positive.
func (b *belief) left(s *settings, now time.Time) time.Duration {
	if b.budget == lease.Infinite {
		return lease.Infinite
	}
	return b.budget - s.elapsed(b.sent, now)
}

// until is U; zero if there is none.
func (b *belief) until() time.Time {
	if b.budget == lease.Infinite {
		return time.Time{}
	}
	return b.sent.Add(b.budget)
}

// A holder is the deciding part of a Session: it is told times and answers, and says what
// they mean. It does nothing by itself and knows no clock, so that every rule about belief,
// loss and IDs can be tested as a table. It is not safe for concurrent use.
type holder struct {
	*settings
	held        *belief // nil: nothing is held
	incarnation uint64  // its number, or the last one's; an event of a dead one is known by it

	broken time.Time // the authority's end of the break that the handlers were told; zero: none

	proposal  lease.ID // what the next Acquire proposes; zero: to be minted
	doubtful  bool     // the proposal may be in force already: its Acquire returned unknown
	handing   lease.ID // the ID that a HandOver of unknown outcome gave away; it is owed too
	unsettled []debt   // IDs that are retired, and perhaps still in force
}

// A verdict is what an answer means.
type verdict uint8

const (
	unknown  verdict = iota // nothing is certain: try again
	granted                 // held, or held on
	taken                   // another certainly has the lease
	ours                    // the lease is in force under an ID whose release is unsettled
	stale                   // leased to an earlier holder of the same owner, which may be taken over
	hidden                  // as stale, but its ID is not told
	late                    // granted, but answered when nothing is certain any more
	undo                    // not held, but the ID may be in force and must be released
	breaking                // held until the break is over, which is news
	told                    // still breaking, as it was told before
	lost                    // no longer held
	failed                  // certainly not granted, but not because another has the lease
)

// certain reports whether an error says that the request changed nothing.
func certain(err error) bool {
	code := lease.CodeOf(err)
	return code != 0 && code != lease.ErrConflict && code != lease.ErrCorrupt
}

// acquired judges the answer to an Acquire of id, sent at sent and answered at now. The
// incarnation begins if the verdict is granted.
func (h *holder) acquired(id lease.ID, sent, now time.Time, res lease.Result, err error) verdict {
	code := lease.CodeOf(err)
	switch {
	case err == nil && res.Record.State == lease.Leased && res.Record.ID == id:
		b := &belief{id, res.Record.Token(), sent, h.budget(min(h.Duration, res.Sure)), h.doubtful}
		if b.left(h.settings, now) <= 0 {
			return late
		}
		h.held, h.broken, h.doubtful = b, time.Time{}, false
		h.incarnation++
		return granted
	case code == lease.ErrBreaking && !res.Now.IsZero() && res.Record.ID != id:
		return taken
	case code == lease.ErrBreaking:
		return undo // an earlier try had been granted, and is broken
	case code == lease.ErrHeld:
		return h.refused(res)
	case certain(err):
		return failed
	}
	h.doubtful = true
	return unknown
}

// refused judges a refusal as held by the record that came with it. Whoever is not told the
// ID in force cannot exclude that it is one of his own that he owes.
func (h *holder) refused(res lease.Result) verdict {
	r := res.Record
	told := !res.Now.IsZero() && !r.ID.IsZero()
	switch {
	case told && h.owes(r.ID) != nil:
		h.recall(r.ID)
		return ours
	case !told && h.due() != nil:
		return ours
	case !h.TakeOver || r.State == lease.Breaking:
		return taken
	case told && r.State == lease.Leased && r.Owner == h.Owner:
		return stale
	case told || r.Owner != "" && r.Owner != h.Owner:
		return taken
	}
	return hidden
}

// renewed judges the answer to a renewal of the incarnation that is held. For lost, the
// Code is the reason.
func (h *holder) renewed(sent, now time.Time, res lease.Result, err error) (verdict, lease.Code) {
	r, code := res.Record, lease.CodeOf(err)
	own := !res.Now.IsZero() && r.ID == h.held.id
	b := *h.held
	b.sent, b.budget = sent, h.budget(min(h.Duration, res.Sure))
	switch {
	case err == nil && own && r.State == lease.Leased:
		h.held, h.broken = &b, time.Time{}
		return granted, 0
	case !code.Refusal():
		return unknown, 0
	case own && r.State == lease.Leased:
		// A refusal that shows our own ID in force is an earlier renewal's doing, one that
		// was granted and lost its answer; it is not a loss.
		if b.left(h.settings, now) <= h.held.left(h.settings, now) {
			return unknown, 0
		}
		h.held = &b
		return granted, 0
	case own && r.State == lease.Breaking && res.Sure > 0:
		return h.breaks(sent, res), 0
	case own && (r.State == lease.Breaking || r.State == lease.Broken):
		return lost, lease.ErrBroken
	}
	return lost, code
}

// breaks takes note of a break: the belief ends with the lock, if not before.
func (h *holder) breaks(sent time.Time, res lease.Result) verdict {
	if !h.broken.IsZero() && !res.Record.Until.Before(h.broken) {
		return told
	}
	h.broken = res.Record.Until
	end := h.budget(res.Sure)
	if b := *h.held; b.budget == lease.Infinite || sent.Add(end).Before(b.until()) {
		b.sent, b.budget = sent, end
		h.held = &b
	}
	return breaking
}

// over reports whether what is held has come to its end at now, and why.
func (h *holder) over(now time.Time) (lease.Code, bool) {
	if h.held == nil || h.held.left(h.settings, now) > 0 {
		return 0, false
	}
	if !h.broken.IsZero() {
		return lease.ErrBroken, true
	}
	return lease.ErrExpired, true
}

// end ends the incarnation that is held, if any, retires its ID and returns the belief.
func (h *holder) end() *belief {
	b := h.held
	h.held = nil
	if b != nil {
		h.retire()
	}
	return b
}

// retire gives up the proposal: it is never proposed again.
func (h *holder) retire() { h.proposal, h.doubtful = lease.ID{}, false }

// A debt is an ID whose release has no certain outcome.
type debt struct {
	id       lease.ID
	doubtful bool // nor has its Acquire: it may yet arrive
	waived   bool // its release was refused, so that it is of interest only if it does arrive
}

// mostUnsettled bounds the memory of a Session that can never reach its authority; the
// oldest are forgotten first.
const mostUnsettled = 256

// owes returns the debt of that ID, or nil.
func (h *holder) owes(id lease.ID) *debt {
	i := slices.IndexFunc(h.unsettled, func(d debt) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	return &h.unsettled[i]
}

// owe remembers an ID that must be released.
func (h *holder) owe(id lease.ID, doubtful bool) {
	if len(h.unsettled) == mostUnsettled {
		h.unsettled = slices.Delete(h.unsettled, 0, 1)
	}
	h.unsettled = append(h.unsettled, debt{id: id, doubtful: doubtful})
}

// due returns the newest debt that is to be settled, or nil.
func (h *holder) due() *debt {
	for i := range slices.Backward(h.unsettled) {
		if d := &h.unsettled[i]; !d.waived && d.id != h.handing {
			return d
		}
	}
	return nil
}

// recall makes an ID due that was waived or given away, since it turns out to be in force.
func (h *holder) recall(id lease.ID) {
	h.owes(id).waived = false
	if h.handing == id {
		h.handing = lease.ID{}
	}
}

// discharge forgets an ID whose release is certain.
func (h *holder) discharge(id lease.ID) {
	h.unsettled = slices.DeleteFunc(h.unsettled, func(d debt) bool { return d.id == id })
}

// waive stops releasing an ID that is not in force, but may come to be.
func (h *holder) waive(id lease.ID) {
	if d := h.owes(id); d != nil {
		d.waived = true
	}
}
