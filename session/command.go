package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// sendNext sends the next command if no command is in flight. The comment of the type machine describes
// the order of the commands.
func (m *machine) sendNext(now time.Time) {
	q := &m.commands
	for q.inFlight == nil {
		if c, ok := q.pop(opHandOver); ok {
			m.sendHandOver(c, now)
			continue
		}
		if q.cleaning {
			m.sendRelease(now)
			continue
		}
		c, ok := q.pop(opAcquire)
		switch {
		case !ok:
			return
		case m.term.belief != nil: // an earlier call has acquired
			m.answer(c.ticket, nil)
		default:
			q.serving, q.tookOver, q.changed = c.ticket, false, false
			m.command(now, aimAcquire, m.tryRequest())
		}
	}
}

// command sends a request as the command in flight. If too many requests were given up and have not
// returned, it sends nothing, and the command fails at once.
func (m *machine) command(now time.Time, a aim, req lease.Request) {
	call := m.commands.serving.number
	if a == aimRelease || a == aimProbe {
		call = m.commands.last()
	}
	r := request{Request: req, aim: a, call: call, sent: now}
	if m.commands.tooManyStuck() {
		m.conclude(r, now, lease.Result{}, errStuck)
		return
	}
	m.commands.inFlight = &r
	m.effects().send = append(m.effects().send, r)
}

func (m *machine) tryRequest() lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: m.proposal().id, Owner: m.o.Owner, Duration: m.o.Duration}
}

// sendHandOver sends the request of a HandOver. If an earlier call has already given the lease away
// or released it, the HandOver fails and nothing is sent.
func (m *machine) sendHandOver(c call, now time.Time) {
	from := m.ledger.newest(given)
	if from == nil {
		m.answer(c.ticket, lease.ErrNotHeld)
		return
	}
	m.commands.serving = c.ticket
	m.command(now, aimHandOver, lease.Request{Action: lease.ActionChange, ID: from.id, Proposed: c.to})
}

// sendRelease releases the newest pending ID. If there is no ID to release, it answers the calls that
// wait for releases.
func (m *machine) sendRelease(now time.Time) {
	for _, c := range m.commands.waiting {
		if p := m.ledger.newest(proposed); c.op == opSettle && p != nil && p.inDoubt {
			p.phase = pending
		}
	}
	if c := m.ledger.newest(pending); c != nil {
		m.command(now, aimRelease, lease.Request{Action: lease.ActionRelease, ID: c.id})
		return
	}
	m.commands.cleaning = false
	m.cleaned(m.commands.last(), nil)
}

// cleaned answers the calls that wait for releases, up to the call with the number upTo.
func (m *machine) cleaned(upTo uint64, err error) {
	q := &m.commands
	rest := q.waiting[:0:0]
	for _, c := range q.waiting {
		switch {
		case !c.cleans() || c.number > upTo:
			rest = append(rest, c)
		case c.refused != nil:
			m.answer(c.ticket, c.refused)
		default:
			m.answer(c.ticket, err)
		}
	}
	q.waiting = rest
}

// answered handles the answer to a request. If stuck is true, the request was given up, and its
// outcome is unknown. When a request that was given up returns after all, the Session calls the
// method returned.
func (m *machine) answered(r request, now time.Time, res lease.Result, err error, stuck bool) {
	m.tick(now)
	if stuck {
		m.commands.stuck++
	}
	if res.Now.IsZero() {
		res = lease.Result{} // an answer without a time has no record
	}
	if err == nil && (r.Action == lease.ActionAcquire || r.Action == lease.ActionRenew) {
		err = res.Record.Validate() // if the record is corrupt, the outcome is unknown
	}
	if certain(err) || err == nil {
		m.failing = streak{}
	}
	if r.aim == aimRenew {
		m.renewed(r, now, res, err)
	} else {
		m.commands.inFlight = nil
		m.observe(res)
		m.conclude(r, now, res, err)
	}
	m.advance(now)
}

// conclude handles the outcome of a command.
func (m *machine) conclude(r request, now time.Time, res lease.Result, err error) {
	switch r.aim {
	case aimAcquire:
		m.tried(r, now, res, err)
	case aimTakeOver:
		m.tookOver(r, now, err)
	case aimRelease:
		m.released(r, now, res, err)
	case aimProbe:
		m.wasProbed(r, now, err)
	case aimHandOver:
		m.handedOver(r, now, err)
	}
}

// returned records that a stuck request has returned. The authority may have carried out the request
// at any time before it returned, so the machine then sends the pending releases again.
func (m *machine) returned(now time.Time) {
	m.commands.stuck--
	m.commands.cleaning = true
	m.advance(now)
}

// observe releases an ID of this machine if an answer reports that the ID is in force although the
// machine no longer holds it. An ID that the machine no longer holds can be in force because a late
// request was carried out, because a release was lost, or because another holder has handed the lease
// over to the ID.
func (m *machine) observe(res lease.Result) {
	if c := m.ledger.find(res.Record.ID); c != nil && (c.phase == settled || c.phase == pending) && res.Record.State.Locked() {
		m.clean(c)
	}
}

// certain reports whether err means that the request has certainly changed nothing.
func certain(err error) bool {
	code := lease.CodeOf(err)
	return errors.Is(err, errStuck) || code != 0 && code != lease.ErrConflict && code != lease.ErrCorrupt
}

// --- Acquire

// tried handles the answer to an Acquire request, whose call may have been abandoned.
func (m *machine) tried(r request, now time.Time, res lease.Result, err error) {
	c := m.ledger.find(r.Proposed)
	took := now.Sub(r.sent)
	if m.commands.serving.op == 0 {
		m.report(AcquireInfo{Err: err, Took: took, Abandoned: true})
		m.abandoned(c, err)
		return
	}
	rec, code := res.Record, lease.CodeOf(err)
	switch {
	case err == nil && rec.State == lease.Leased && rec.ID == c.id:
		b := &belief{id: c.id, token: rec.Token(), sent: r.sent, budget: m.o.budget(min(m.o.Duration, res.MinRemaining))}
		if b.left(m.o, now) <= 0 {
			m.clean(c)
			err = fmt.Errorf("granted after %v, when nothing was certain any more: %w", took, lease.ErrExpired)
			break
		}
		m.begin(c, b)
	case err == nil:
		c.inDoubt, err = true, errOther
	case code == lease.ErrBreaking && rec.ID != c.id && !res.Now.IsZero():
		err = notGranted(res)
	case code == lease.ErrBreaking: // an earlier request was granted, and its lease is breaking
		m.clean(c)
	case code == lease.ErrHeldByOther:
		if m.takesOver(rec) {
			m.commands.tookOver = true
			m.command(now, aimTakeOver, lease.Request{Action: lease.ActionChange, ID: rec.ID, Proposed: c.id, Owner: m.o.Owner})
			return
		}
		err = m.refused(res)
	case !certain(err):
		c.inDoubt = true
	case m.commands.changed: // the take-over has put the ID in force, but it was not acquired
		m.clean(c)
	}
	m.decide(took, err)
}

// Both errors mean that an Acquire was certainly not granted, and that the method Acquire returns
// (false, nil). The error is errPerhapsFree if the authority has no clock and has not yet seen a
// renewal, because such an authority cannot know whether the lease has expired.
var (
	errNotGranted  = errors.New("the lease is locked")
	errPerhapsFree = errors.New("the lease may be locked")
)

func notGranted(res lease.Result) error {
	if res.MinRemaining <= 0 && !res.Now.IsZero() {
		return errPerhapsFree
	}
	return errNotGranted
}

// decide ends the Acquire in service with the error err.
func (m *machine) decide(took time.Duration, err error) {
	c := m.commands.serving
	m.commands.serving = ticket{}
	info := AcquireInfo{Took: took, Err: err}
	switch {
	case err == nil:
		info.Token = m.term.belief.token
	case err == errNotGranted || err == errPerhapsFree:
		info.Err = nil
	default:
		m.failed("acquire", err)
	}
	m.report(info)
	m.answer(c, err)
}

// abandoned handles the answer to an Acquire whose caller no longer waits. If the Acquire was
// certainly not granted, its ID need not be released.
func (m *machine) abandoned(c *claim, err error) {
	switch {
	case c == nil || err == nil:
	case !certain(err):
		c.inDoubt = true
	case lease.CodeOf(err) != lease.ErrBreaking && !c.inDoubt && !m.commands.changed:
		m.ledger.settle(c)
	}
}

// refused returns the error of an Acquire that was refused because the lease is locked. If the answer
// does not contain the ID in force, the ID in force may be one that the machine still has to release.
func (m *machine) refused(res lease.Result) error {
	rec := res.Record
	c := m.ledger.find(rec.ID)
	if rec.ID.IsZero() {
		if c = m.ledger.newest(pending); c == nil {
			c = m.ledger.newest(deferred)
		}
	}
	switch {
	case c == nil || c.phase == proposed:
		if m.o.TakeOver && rec.State != lease.Breaking && rec.ID.IsZero() && (rec.Owner == "" || rec.Owner == m.o.Owner) {
			return fmt.Errorf("the authority does not disclose the ID to take over: %w", errors.ErrUnsupported)
		}
		return notGranted(res)
	case c.phase == deferred:
		return errDeferred
	}
	m.clean(c)
	return errUnsettled
}

// takesOver reports whether the lease belongs to an earlier holder with the same owner and can be
// taken over. Each Acquire tries a take-over at most once.
func (m *machine) takesOver(rec lease.Record) bool {
	return m.o.TakeOver && !m.commands.tookOver && rec.State == lease.Leased && rec.Owner == m.o.Owner &&
		!rec.ID.IsZero() && m.ledger.find(rec.ID) == nil
}

// tookOver handles the answer to a take-over, and continues with the Acquire that the take-over was
// for. If the authority refused the take-over, the lease has changed since the refusal of the
// Acquire, and may be free.
func (m *machine) tookOver(r request, now time.Time, err error) {
	c, took := m.ledger.find(r.Proposed), now.Sub(r.sent)
	if !certain(err) && err != nil && c != nil {
		c.inDoubt = true
	}
	switch {
	case m.commands.serving.op == 0:
		m.report(AcquireInfo{Err: err, Took: took, Abandoned: true})
		m.abandoned(c, err)
	case err == nil || lease.CodeOf(err).Refusal():
		m.commands.changed = err == nil
		m.command(now, aimAcquire, m.tryRequest())
	default:
		m.decide(took, err)
	}
}

// --- Release

// released handles the answer to a release. If the release is refused, its ID is not in force. But an
// earlier Acquire of the ID with an unknown outcome may still reach the authority. If such an Acquire
// is granted for a finite Duration, the lease ends by itself.
//
// If the Duration is infinite, the machine acquires the ID once and releases it again, in order to
// change the record. If the authority has already read the old record for the earlier Acquire, it can
// then no longer replace that record. If the earlier Acquire is granted even later, the next Release
// releases the lease. The next Acquire also releases the lease if it is refused because of the old
// ID.
func (m *machine) released(r request, now time.Time, res lease.Result, err error) {
	c, refused := m.ledger.find(r.ID), lease.CodeOf(err).Refusal()
	switch {
	case err != nil && !refused:
		m.releaseFailed(r.ID, r.call, err)
	case refused && c != nil && c.inDoubt && !c.probed && m.o.Duration == lease.Infinite && !res.Record.State.Locked():
		m.command(now, aimProbe, lease.Request{Action: lease.ActionAcquire, Proposed: r.ID, Owner: m.o.Owner, Duration: m.o.Duration})
	default:
		m.ledger.settle(c)
		m.report(ReleaseInfo{ID: r.ID})
	}
}

// wasProbed handles the answer to an Acquire that was sent only to change the record, as released
// describes.
func (m *machine) wasProbed(r request, now time.Time, err error) {
	c, code := m.ledger.find(r.Proposed), lease.CodeOf(err)
	switch {
	case err != nil && !code.Refusal():
		m.releaseFailed(r.Proposed, r.call, err)
	case err != nil && code != lease.ErrBreaking: // another holder has the lease
		m.ledger.settle(c)
		m.report(ReleaseInfo{ID: r.Proposed})
	default:
		if c != nil {
			c.probed = true
		}
		m.command(now, aimRelease, lease.Request{Action: lease.ActionRelease, ID: r.Proposed})
	}
}

// releaseFailed answers the calls that already waited for the release when it was sent. If other
// calls have begun to wait for the release since then, the release is retried for them.
func (m *machine) releaseFailed(id lease.ID, upTo uint64, err error) {
	m.failed("release", err)
	m.report(ReleaseInfo{ID: id, Err: err})
	m.cleaned(upTo, err)
	m.commands.cleaning = m.commands.last() > 0
}

// handedOver handles the answer to a hand-over. If the authority refused it, the lease is released.
// For example, a lease that is breaking cannot be handed over, but is still locked.
func (m *machine) handedOver(r request, now time.Time, err error) {
	from, c := m.ledger.find(r.ID), m.commands.serving
	m.commands.serving = ticket{}
	m.report(ReleaseInfo{ID: r.ID, To: r.Proposed, Err: err})
	switch {
	case err == nil:
		m.ledger.settle(from)
	case lease.CodeOf(err).Refusal() && from != nil:
		m.clean(from)
		m.wait(call{ticket: c, refused: err})
		return
	default:
		m.failed("hand over", err)
	}
	m.answer(c, err)
}
