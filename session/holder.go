package session

import (
	"time"

	"github.com/fencedlease/lease"
)

// A holder is the deciding part of a Session: it is told times and answers, and says what
// they mean. It does nothing by itself and knows no clock, so that every rule about belief,
// loss and IDs can be tested as a table. An answer that shows nothing must be zero. It is not
// safe for concurrent use.
type holder struct {
	o           *Options // complete
	held        *belief  // nil: nothing is held
	incarnation uint64   // its number, or the last one's; an event of a dead one is known by it

	breaks lease.Result // what showed the break that the handlers were told; zero: none was

	proposal  lease.ID // what the next Acquire proposes; zero: to be minted
	doubtful  bool     // the proposal may be in force already: its Acquire returned unknown
	shown     bool     // the proposal was told: somebody may hand the lease over to it
	handing   lease.ID // the ID that a HandOver of unknown outcome gave away; it is owed too
	unsettled []debt   // IDs that are retired, and perhaps still in force
}

// A verdict is what an answer means.
type verdict uint8

const (
	unknown  verdict = iota // nothing is certain: try again
	granted                 // held, or held on
	taken                   // certainly not granted: another has the lease, or may have it
	ours                    // the lease is in force under an ID whose release is unsettled
	stale                   // leased to an earlier holder of the same owner, which may be taken over
	hidden                  // as stale, but its ID is not told
	late                    // granted, but answered when nothing is certain any more
	undo                    // not held, but the ID may be in force and must be released
	breaking                // held until the break is over, which is news
	told                    // still breaking, as it was told before, or less of that is certain
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
		b := &belief{id, res.Record.Token(), sent, h.o.budget(min(h.o.Duration, res.MinRemaining)), h.doubtful}
		if b.left(h.o, now) <= 0 {
			return late
		}
		h.held, h.breaks, h.doubtful = b, lease.Result{}, false
		h.incarnation++
		return granted
	case code == lease.ErrBreaking && !res.Now.IsZero() && res.Record.ID != id:
		return taken
	case code == lease.ErrBreaking:
		return undo // an earlier try had been granted, and is broken
	case code == lease.ErrHeldByOther:
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
	told := !r.ID.IsZero()
	switch {
	case h.owes(r.ID) != nil:
		h.recall(r.ID)
		return ours
	case !told && h.due() != nil:
		return ours
	case !h.o.TakeOver || r.State == lease.Breaking:
		return taken
	case told && r.State == lease.Leased && r.Owner == h.o.Owner:
		return stale
	case told || r.Owner != "" && r.Owner != h.o.Owner:
		return taken
	}
	return hidden
}

// renewed judges the answer to a renewal of the incarnation that is held. For lost, the
// Code is the reason.
func (h *holder) renewed(sent, now time.Time, res lease.Result, err error) (verdict, lease.Code) {
	r, code := res.Record, lease.CodeOf(err)
	own := r.ID == h.held.id
	b := *h.held
	b.sent, b.budget = sent, h.o.budget(min(h.o.Duration, res.MinRemaining))
	switch {
	case err == nil && own && r.State == lease.Leased:
		h.held, h.breaks = &b, lease.Result{}
		return granted, 0
	case !code.Refusal():
		return unknown, 0
	case own && r.State == lease.Leased:
		// A refusal that shows our own ID in force is an earlier renewal's doing, one that
		// was granted and lost its answer; it is not a loss.
		if b.left(h.o, now) <= h.held.left(h.o, now) {
			return unknown, 0
		}
		h.held, h.breaks = &b, lease.Result{}
		return granted, 0
	case own && r.State == lease.Breaking && res.MinRemaining > 0:
		return h.ends(&b, now, res), 0
	case own && (r.State == lease.Breaking || r.State == lease.Broken):
		return lost, lease.ErrBroken
	}
	return lost, code
}

// ends takes note of a break, by which b is what may be believed: the belief ends with what is
// certain of the lock, if not before. What was certain earlier is not, since the break may have
// been shortened without a sign of it.
func (h *holder) ends(b *belief, now time.Time, res lease.Result) verdict {
	if b.left(h.o, now) < h.held.left(h.o, now) {
		h.held = b
	}
	if h.knows(res) {
		return told
	}
	h.breaks = res
	return breaking
}

// knows reports whether res shows the break that was told before: it is not sooner over, and no
// less of it is certain than the passing of time accounts for. Of one that was shortened, an
// observer without the authority's clock may know no sooner end. What depends on it is only who
// is told: the times of a Result need not be of one clock, nor of the moment of the decision.
func (h *holder) knows(res lease.Result) bool {
	b := &h.breaks
	return !b.Now.IsZero() && !res.Record.Until.Before(b.Record.Until) && res.MinRemaining >= b.MinRemaining-h.o.most(res.Now.Sub(b.Now))
}

// over reports whether what is held has come to its end at now, and why.
func (h *holder) over(now time.Time) (lease.Code, bool) {
	if h.held == nil || h.held.left(h.o, now) > 0 {
		return 0, false
	}
	if !h.breaks.Now.IsZero() {
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

// retire gives up the proposal: it is never proposed again. One that somebody may yet give the
// lease to is remembered.
func (h *holder) retire() {
	if h.shown {
		h.remember(debt{id: h.proposal, shown: true, waived: true})
	}
	h.proposal, h.doubtful, h.shown = lease.ID{}, false, false
}
