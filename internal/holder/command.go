package holder

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// sendNext sends the next command if none is in flight, in the order that type Machine describes.
func (m *Machine) sendNext(now time.Time) {
	q := &m.commands
	for q.inFlight == nil {
		if waiting, ok := q.pop(OpHandOver); ok {
			m.sendHandOver(waiting, now)
		} else if q.hasCleanup() || m.ledger.newest(pending) != nil && !q.tooManyStuck() {
			m.sendRelease(now)
		} else if waiting, ok = q.pop(OpAcquire); !ok {
			return
		} else if m.term.belief != nil { // an earlier call has acquired
			m.answer(waiting.ticket, nil)
		} else {
			q.serving, q.triedTakeOver, q.tookOver = waiting.ticket, false, false
			m.sendCommand(now, AimAcquire, m.tryRequest())
		}
	}
}

// sendCommand sends a request as the command in flight. If too many requests are stuck, the command
// fails at once instead.
func (m *Machine) sendCommand(now time.Time, a Aim, req lease.Request) {
	call := m.commands.serving.number
	if a == AimRelease || a == AimProbe {
		call = m.commands.last()
	}
	r := Request{Request: req, Aim: a, Call: call, Sent: now}
	if m.commands.tooManyStuck() {
		m.conclude(r, now, lease.Result{}, errStuck)
		return
	}
	if c := m.ledger.find(r.clears()); c != nil {
		c.again, c.unsent = false, false
	}
	m.commands.inFlight = &r
	m.effects().Send = append(m.effects().Send, r)
}

func (m *Machine) tryRequest() lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: m.proposal().id, Owner: m.o.Owner, Duration: m.o.Duration}
}

// sendHandOver sends the request of a HandOver, which fails at once if an earlier call has already
// handed the lease over or released it.
func (m *Machine) sendHandOver(waiting call, now time.Time) {
	from := m.ledger.newest(given)
	if from == nil {
		err := lease.ErrNotHeld
		if m.closed {
			err = lease.ErrClosed
		}
		m.answer(waiting.ticket, err)
		return
	}
	m.commands.serving = waiting.ticket
	m.sendCommand(now, AimHandOver, lease.Request{Action: lease.ActionChange, ID: from.id, Proposed: waiting.to})
}

// sendRelease releases the newest pending ID. If there is none, it answers the calls that wait for
// releases.
func (m *Machine) sendRelease(now time.Time) {
	for _, waiting := range m.commands.waiting {
		if c := m.ledger.newest(proposed); waiting.op == OpReleaseUncertain && c != nil && c.inDoubt {
			c.phase = pending
		}
	}
	if c := m.ledger.newest(pending); c != nil {
		for i := range m.ledger {
			m.ledger[i].again = false
		}
		m.sendCommand(now, AimRelease, lease.Request{Action: lease.ActionRelease, ID: c.id})
		return
	}
	m.answerReleases(m.commands.last(), nil)
}

// answerReleases answers the calls that wait for releases, up to the one with the number upTo.
func (m *Machine) answerReleases(upTo uint64, err error) {
	q := &m.commands
	rest := q.waiting[:0:0]
	for _, waiting := range q.waiting {
		switch {
		case !waiting.isCleanup() || waiting.number > upTo:
			rest = append(rest, waiting)
		case waiting.refused != nil:
			m.answer(waiting.ticket, waiting.refused)
		default:
			m.answer(waiting.ticket, waiting.withLoss(err))
		}
	}
	q.waiting = rest
}

// Answered handles the answer to a request. If stuck is true, the Session has given the request up with
// an unknown outcome, and calls Returned when it returns.
func (m *Machine) Answered(r Request, now time.Time, res lease.Result, err error, stuck bool) {
	if stuck {
		m.commands.stuck++
	}
	if res.Now.IsZero() {
		res = lease.Result{} // if an answer has no time, its record has no meaning
	}
	if err == nil && (r.Action == lease.ActionAcquire || r.Action == lease.ActionRenew) {
		err = res.Record.Validate() // if the record is corrupt, the outcome is unknown
	}
	before := m.failures
	if r.Aim == AimRenew {
		m.renewalAnswered(r, now, res, err)
	} else {
		m.commands.inFlight = nil
		m.releaseStrayID(res)
		m.conclude(r, now, res, err)
	}
	if before > 0 && m.failures == before && (err == nil || lease.CodeOf(err).Refusal()) {
		m.report(Recovery{before})
		m.failures = 0
	}
}

// conclude handles the outcome of a command.
func (m *Machine) conclude(r Request, now time.Time, res lease.Result, err error) {
	switch r.Aim {
	case AimAcquire:
		m.acquireAnswered(r, now, res, err)
	case AimTakeOver:
		m.takeOverAnswered(r, now, err)
	case AimRelease:
		m.releaseAnswered(r, now, res, err)
	case AimProbe:
		m.probeAnswered(r, now, err)
	case AimHandOver:
		m.handOverAnswered(r, now, err)
	}
}

// Returned records that a stuck request has returned. Its late answer can end the belief, and can
// settle an unsettled ID. If the request may have put an ID in force after a release of it, the ID is
// released once more, after the answer to any command in flight that clears it.
//
// The claim of an ID that a late answer settles is kept until the next grant: the answer to an Acquire
// in flight may still show the ID in force.
func (m *Machine) Returned(now time.Time, r Request, res lease.Result, err error) {
	m.commands.stuck--
	if res.Now.IsZero() {
		res = lease.Result{}
	}
	refused := lease.CodeOf(err).Refusal()
	switch {
	case r.Aim == AimRenew:
		m.renewalReturned(r, now, res, err)
	case r.Aim == AimRelease:
		if c := m.ledger.find(r.ID); (err == nil || refused) && c != nil && m.settles(c) {
			c.phase = cleared
			m.report(Released{ID: r.ID})
		}
	case r.Aim == AimHandOver:
		switch c := m.ledger.find(r.ID); {
		case c == nil || c.phase != given:
		case err == nil:
			c.phase = cleared
			m.report(Released{ID: r.ID, To: r.Proposed})
		case refused:
			m.markPending(c)
		}
	case !ProvesNoChange(err):
		c := m.ledger.find(r.Proposed)
		if c == nil {
			break
		}
		if f := m.commands.inFlight; f != nil && f.clears() == c.id {
			c.again = true
		}
		if c.phase == unsettled || c.phase == cleared && c.inDoubt {
			m.markPending(c)
		}
	}
}

// settles reports whether the late answer to a release of the ID of c shows that it is not in force. It
// does not if another request may put the ID in force later.
func (m *Machine) settles(c *claim) bool {
	if f := m.commands.inFlight; f != nil && f.clears() == c.id || c.inDoubt && m.o.Duration == lease.Infinite {
		return false
	}
	return !c.unsent && (c.phase == unsettled || c.phase == pending && !c.again)
}

// clears returns the ID that the command r puts out of force, or the zero ID.
func (r *Request) clears() lease.ID {
	switch r.Aim {
	case AimRelease, AimHandOver:
		return r.ID
	case AimProbe:
		return r.Proposed
	}
	return lease.ID{}
}

// releaseStrayID releases an old ID of this machine under which, by an answer, the lease is locked.
// Either a late request was carried out, or a release was lost, or another holder has handed the lease
// over to the ID.
func (m *Machine) releaseStrayID(res lease.Result) {
	if c := m.ledger.find(res.Record.ID); c != nil && (c.phase == cleared || c.phase == unsettled) && res.Record.State.Locked() {
		m.markPending(c)
	}
}

// ProvesNoChange reports whether the error of a request proves that it has changed nothing.
func ProvesNoChange(err error) bool {
	code := lease.CodeOf(err)
	return errors.Is(err, errStuck) || code != 0 && code != lease.ErrConflict && code != lease.ErrCorrupt
}

// countFailure counts a failed request, and reports the 1st, 2nd, 4th, 8th and so on of a series.
func (m *Machine) countFailure(what string, err error) {
	if m.failures++; m.failures&(m.failures-1) == 0 { // a power of two
		m.report(Failure{What: what, Err: err, Count: m.failures})
	}
}

// --- Acquire

// acquireAnswered handles the answer to the request of an Acquire, whose caller may have stopped
// waiting.
func (m *Machine) acquireAnswered(r Request, now time.Time, res lease.Result, err error) {
	c, took := m.ledger.find(r.Proposed), now.Sub(r.Sent)
	if m.commands.serving.op == 0 {
		m.report(Acquired{Err: err, Took: took, Abandoned: true})
		m.abandoned(c, err)
		return
	}
	rec, code := res.Record, lease.CodeOf(err)
	switch {
	case err == nil && rec.State == lease.Leased && rec.ID == c.id:
		b := &Belief{ID: c.id, Token: rec.Token(), Sent: r.Sent, Budget: m.o.Budget(min(m.o.Duration, res.MinRemaining))}
		if b.Left(m.o, now) <= 0 {
			m.markPending(c)
			err = fmt.Errorf("granted after %v, when nothing was certain any more: %w", took, lease.ErrExpired)
			break
		}
		m.begin(b)
	case err == nil:
		c.inDoubt, err = true, errOther
	case code == lease.ErrBreaking && rec.ID != c.id && !res.Now.IsZero():
		err = notGranted(res)
	case code == lease.ErrBreaking: // an earlier request may have been granted, and its lease is breaking
		m.markPending(c)
	case code == lease.ErrHeldByOther:
		if m.takesOver(rec) {
			m.commands.triedTakeOver = true
			m.sendCommand(now, AimTakeOver, lease.Request{Action: lease.ActionChange, ID: rec.ID, Proposed: c.id, Owner: m.o.Owner})
			return
		}
		err = m.refused(res)
	case !ProvesNoChange(err):
		c.inDoubt = true
	case m.commands.tookOver: // the take-over has put the ID in force, but the acquire has failed
		m.markPending(c)
	}
	m.finishAcquire(took, err)
}

// The errors ErrNotGranted and ErrPerhapsFree mean that an Acquire was certainly not granted. For
// both errors, Session.Acquire returns (false, nil). The machine uses ErrPerhapsFree if the
// authority does not know whether the lease has expired, and ErrNotGranted in every other case.
// An authority without a clock does not know when the first entry that it sees was written, so the
// lease may have expired already.
var (
	ErrNotGranted  = errors.New("the lease is locked")
	ErrPerhapsFree = errors.New("the lease may be locked")
)

func notGranted(res lease.Result) error {
	if res.MinRemaining <= 0 && !res.Now.IsZero() {
		return ErrPerhapsFree
	}
	return ErrNotGranted
}

// finishAcquire ends the Acquire in service with the outcome err.
func (m *Machine) finishAcquire(took time.Duration, err error) {
	asker := m.commands.serving
	m.commands.serving = ticket{}
	info := Acquired{Took: took, Err: err}
	switch {
	case err == nil:
		info.Token = m.term.belief.Token
	case err == ErrNotGranted || err == ErrPerhapsFree:
		info.Err = nil
	default:
		m.countFailure("acquire", err)
	}
	m.report(info)
	m.answer(asker, err)
}

// abandoned handles the answer to an Acquire whose caller no longer waits. If it was certainly not
// granted, its ID need not be released.
func (m *Machine) abandoned(c *claim, err error) {
	switch {
	case c == nil || err == nil:
	case !ProvesNoChange(err):
		c.inDoubt = true
	case lease.CodeOf(err) != lease.ErrBreaking && !c.inDoubt && !m.commands.tookOver:
		m.ledger.clear(c)
	}
}

// refused returns the error of an Acquire that was refused because the lease is locked. An old ID of
// this machine that locks it is released again, unless it is deferred or held until MinHold.
func (m *Machine) refused(res lease.Result) error {
	rec, c := res.Record, m.lockingClaim(res.Record)
	switch {
	case c == nil || c.phase == proposed:
		mayBeOwn := rec.Owner == "" || rec.Owner == m.o.Owner
		if m.o.TakeOver && rec.State != lease.Breaking && rec.ID.IsZero() && mayBeOwn {
			return fmt.Errorf("the authority does not disclose the ID to take over: %w", errors.ErrUnsupported)
		}
		return notGranted(res)
	case c.phase == heldUntil:
		return notGranted(res)
	case c.phase == deferred:
		return errDeferred
	}
	m.markPending(c)
	return errUnsettled
}

// takesOver reports whether the lease belongs to an earlier holder with the same owner and can be taken
// over, which each Acquire tries at most once.
func (m *Machine) takesOver(rec lease.Record) bool {
	return m.o.TakeOver && !m.commands.triedTakeOver && m.hasOwner(rec) && m.ledger.find(rec.ID) == nil
}

// hasOwner reports whether a holder with the Owner of this machine holds the lease, under an ID that
// the record contains.
func (m *Machine) hasOwner(rec lease.Record) bool {
	return rec.State == lease.Leased && rec.Owner == m.o.Owner && !rec.ID.IsZero()
}

// takeOverAnswered handles the answer to a take-over, which is a part of an Acquire. If it was granted
// or refused, and the caller still waits, the acquire request is sent again: after a refusal, the lease
// has changed and may be free.
func (m *Machine) takeOverAnswered(r Request, now time.Time, err error) {
	c, took := m.ledger.find(r.Proposed), now.Sub(r.Sent)
	if !ProvesNoChange(err) && err != nil && c != nil {
		c.inDoubt = true
	}
	switch {
	case m.commands.serving.op == 0:
		m.report(Acquired{Err: err, Took: took, Abandoned: true})
		m.abandoned(c, err)
	case err == nil || lease.CodeOf(err).Refusal():
		m.commands.tookOver = err == nil
		m.sendCommand(now, AimAcquire, m.tryRequest())
	default:
		m.finishAcquire(took, err)
	}
}

// --- Release

// releaseAnswered handles the answer to a release. After a refusal, the ID is not in force. But if an
// earlier Acquire with it had an unknown outcome, the request of that Acquire may still reach the
// authority. A finite lease that it acquires ends by itself.
//
// For an infinite lease, the machine sends one probe: it acquires the lease under the ID, and releases
// it again. Both change the record, so a grant of the earlier Acquire for which the authority had read
// the record before the probe fails at its write. A read after the probe can still lead to a grant,
// which is released at the next Release, or when an Acquire is refused because of the old ID.
func (m *Machine) releaseAnswered(r Request, now time.Time, res lease.Result, err error) {
	c, refused := m.ledger.find(r.ID), lease.CodeOf(err).Refusal()
	mayComeIntoForce := refused && m.o.Duration == lease.Infinite && !res.Record.State.Locked()
	switch {
	case err != nil && !refused:
		m.releaseFailed(r.ID, r.Call, err)
	case mayComeIntoForce && c != nil && c.inDoubt && !c.probed:
		m.sendCommand(now, AimProbe, lease.Request{Action: lease.ActionAcquire, Proposed: r.ID, Owner: m.o.Owner, Duration: m.o.Duration})
	case c != nil && c.again: // it stays pending
	default:
		m.ledger.clear(c)
		m.report(Released{ID: r.ID})
	}
}

// probeAnswered handles the answer to the Acquire of a probe, which releaseAnswered explains.
func (m *Machine) probeAnswered(r Request, now time.Time, err error) {
	c, code := m.ledger.find(r.Proposed), lease.CodeOf(err)
	switch {
	case err != nil && !code.Refusal():
		m.releaseFailed(r.Proposed, r.Call, err)
	case err != nil && code != lease.ErrBreaking && c != nil && c.again: // it stays pending
	case err != nil && code != lease.ErrBreaking: // the probe was not granted
		m.ledger.clear(c)
		m.report(Released{ID: r.Proposed})
	default:
		if c != nil {
			c.probed = true
		}
		m.sendCommand(now, AimRelease, lease.Request{Action: lease.ActionRelease, ID: r.Proposed})
	}
}

// releaseFailed handles a release whose outcome is unknown, or that was not sent because too many
// requests are stuck. It answers the calls that wait for releases, up to the one with the number upTo,
// the newest that began before the release was sent. The IDs that were pending then become unsettled,
// unless a newer call waits for releases. If the release was not sent, they stay pending until a stuck
// request returns.
func (m *Machine) releaseFailed(id lease.ID, upTo uint64, err error) {
	what := "release"
	if c := m.ledger.find(id); c != nil && c.inDoubt {
		what = "release after an acquire with an unknown outcome"
	}
	m.countFailure(what, err)
	m.report(Released{ID: id, Err: err})
	m.answerReleases(upTo, err)
	if errors.Is(err, errStuck) || m.commands.hasCleanup() {
		return
	}
	for i := range m.ledger {
		if c := &m.ledger[i]; c.phase == pending && !c.again {
			c.phase = unsettled
		}
	}
}

// handOverAnswered handles the answer to a hand-over. After a refusal, for example because the lease is
// breaking but still locked, the machine releases the lease.
func (m *Machine) handOverAnswered(r Request, now time.Time, err error) {
	from, asker := m.ledger.find(r.ID), m.commands.serving
	m.commands.serving = ticket{}
	m.report(Released{ID: r.ID, To: r.Proposed, Err: err})
	switch {
	case err == nil && from != nil && from.again:
		m.markPending(from)
	case err == nil:
		m.ledger.clear(from)
	case lease.CodeOf(err).Refusal() && from != nil:
		m.markPending(from)
		m.enqueue(call{ticket: asker, refused: err})
		return
	default:
		m.countFailure("hand over", err)
	}
	m.answer(asker, err)
}
