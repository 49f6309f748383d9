package holder

import (
	"time"

	"github.com/fencedlease/lease"
)

// An answer is what the answer to a renewal of the held term says about the lease.
type answer uint8

const (
	answerUnknown  answer = iota // nothing certain, so the lease may still be held
	answerHeld                   // the lease is held under our ID
	answerCloned                 // the lease is held under our ID, and its token is newer than ours
	answerBreaking               // the lease is held until a break is over
	answerEnded                  // the lease is not held any more
)

// readAnswer compares an answer with the belief b. A grant that does not show our ID in force is not certain.
func readAnswer(b *Belief, res lease.Result, err error) answer {
	rec, refused := res.Record, lease.CodeOf(err).Refusal()
	own := rec.ID == b.ID
	inForce := own && rec.State == lease.Leased
	switch {
	case err != nil && !refused, err == nil && !inForce:
		return answerUnknown
	case inForce && isNewer(rec, b):
		return answerCloned
	case inForce:
		return answerHeld
	case own && rec.State == lease.Breaking && res.MinRemaining > 0:
		return answerBreaking
	}
	return answerEnded
}

// isNewer reports whether a record under the ID of a belief has a newer token. Then another Acquire
// with the ID was granted: a late one of this machine, or one of a clone that was made of its process
// before the Acquire.
func isNewer(rec lease.Record, b *Belief) bool { return rec.Token() > b.Token }

// beliefOf returns the belief that the answer to a renewal of the held term gives.
func (m *Machine) beliefOf(r Request, res lease.Result) Belief {
	b := *m.term.belief
	b.Sent, b.Budget = r.Sent, m.o.Budget(min(m.o.Duration, res.MinRemaining))
	return b
}

// renewalAnswered handles the answer to a renewal.
func (m *Machine) renewalAnswered(r Request, now time.Time, res lease.Result, err error) {
	info := Renewed{Err: err, Took: r.Wait + now.Sub(r.Sent)}
	t := &m.term
	m.renewals--
	if t.belief == nil || r.Term != t.number {
		m.report(info)
		m.pastRenewal(r, err)
		return
	}
	info.Token, info.Left = t.belief.Token, t.belief.Left(m.o, now)
	m.report(info)
	t.renewal.inFlight = false

	b := m.beliefOf(r, res)
	a := readAnswer(&b, res, err)
	if a == answerHeld && err != nil && b.Left(m.o, now) <= t.belief.Left(m.o, now) {
		a = answerUnknown // a refusal extends the belief only if it proves that an earlier renewal, whose answer was lost, was granted
	}
	switch a {
	case answerHeld:
		t.belief, t.notice, t.failed = &b, nil, nil
		t.stopped = t.stopped && b.Left(m.o, now) <= m.o.Window()
		t.renewal.at = m.pace(r.Sent, 0.1)
	case answerUnknown:
		if err == nil {
			err = errOther
		}
		t.failed = err
		t.renewal.retry(now, m.random.Shorten(m.o.RetryDelay, 0.5))
		m.countFailure("renewal", err)
	case answerBreaking:
		t.failed = nil
		m.noteBreak(&b, now, res)
		if t.belief == nil {
			return
		}
		t.renewal.at = m.pace(r.Sent, 0.1)
	default:
		m.loseByAnswer(a, res.Record, err)
		return
	}
	if t.renewal.again {
		t.renewal.hasten(now)
	}
}

// renewalReturned handles the late answer to a renewal that was given up as stuck. It can end the
// belief or shorten it, but not extend it: a newer answer may have shortened it.
func (m *Machine) renewalReturned(r Request, now time.Time, res lease.Result, err error) {
	if t := &m.term; t.belief == nil || r.Term != t.number {
		m.pastRenewal(r, err)
		return
	}
	b := m.beliefOf(r, res)
	switch a := readAnswer(&b, res, err); a {
	case answerUnknown, answerHeld:
	case answerBreaking:
		m.noteBreak(&b, now, res)
	default:
		m.loseByAnswer(a, res.Record, err)
	}
}

// loseByAnswer ends the term after an answer that shows that the lease is not held any more, or not by us.
func (m *Machine) loseByAnswer(a answer, rec lease.Record, err error) {
	own := rec.ID == m.term.belief.ID
	switch {
	case a == answerCloned && m.ledger.newest(held).inDoubt:
		m.lose(lease.ErrEnded, err)
	case a == answerCloned:
		m.lose(lease.ErrTakenOver, err)
	case own && (rec.State == lease.Breaking || rec.State == lease.Broken): // the break is over, or may be over
		m.lose(lease.ErrBroken, err)
	case !own && m.hasOwner(rec) && !m.unique:
		m.lose(lease.ErrTakenOver, err)
	default:
		m.lose(lease.CodeOf(err), err)
	}
}

// pastRenewal handles the answer to a renewal whose term has ended. If the renewal may have been
// granted, and the outcome of the release of its ID is unknown, the ID is released again.
func (m *Machine) pastRenewal(r Request, err error) {
	if c := m.ledger.find(r.ID); c != nil && c.phase == unsettled && !lease.CodeOf(err).Refusal() {
		c.phase = pending // without setting again: a renewal does not put a released ID in force
	}
}
