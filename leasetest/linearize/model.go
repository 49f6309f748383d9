package linearize

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencedlease/lease"
)

// A state is a possible state of the authority. The methods of state implement the transitions of a lease
// without lease.Step, which needs to know exactly when a lock ends. A state contains only the earliest and
// the latest possible end of the lock.
type state struct {
	id       lease.ID // the ID of the last lease; zero if there is none
	owner    string
	released bool
	broken   bool
	over     bool  // the record itself says that the lock has ended, so no clock is needed
	lo, hi   int64 // the lock ends between lo and hi; both are never if the lease is infinite
	duration int64
	epoch    uint64
	unsure   bool  // the epoch may be higher, because no answer has shown it since the first acquire
	at       int64 // the latest time of all answers so far
	wrote    int64 // the time of the last write
	last     bool  // all requests with a known outcome have been executed
}

// Each phase of a lease is a bit, because several phases can be possible at the same time.
const (
	available = 1 << iota
	leased
	expired
	breaking
	broken
)

// phases returns all possible phases of the lease at the time of the request.
func (s *state) phases(out *output) (p int) {
	if s.id.IsZero() || s.released {
		return available
	}
	locked, over := leased, expired
	if s.broken {
		locked, over = breaking, broken
	}
	if s.hi == never || out.late && !s.over || out.from-out.epsilon < s.hi {
		p |= locked
	}
	if s.lo != never && (out.to == never || out.to+out.epsilon >= s.lo) {
		p |= over
	}
	return p
}

func (r *Recorder) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: byName,
		Init:      func() []any { return []any{state{}} },
		Step: func(st, in, out any) (next []any) {
			o := out.(output)
			for _, s := range r.step(st.(state), in.(input), &o) {
				next = append(next, s)
			}
			return next
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: describe,
		DescribeState: func(st any) string {
			s := st.(state)
			return fmt.Sprintf("id %.8s released %v broken %v end [%v, %v] epoch %d", s.id, s.released, s.broken, time.Duration(s.lo), time.Duration(s.hi), s.epoch)
		},
	}
	return m.ToModel()
}

// The method step executes the request in the state s, and returns all states that are possible afterwards.
// If the answer is impossible in the state s, the method returns no state. If a request of unknown outcome
// changes nothing, the method executes this request only at the end of the history. This restriction keeps
// the search for a valid order short.
func (r *Recorder) step(s state, in input, out *output) (next []state) {
	switch {
	case in.last:
		s.last = true
		return []state{s}
	case s.last:
		return []state{s}
	}
	if out.exact {
		if out.from < s.at {
			return nil // times must not decrease in the order of the requests
		}
		s.at = out.from
	}
	for _, phase := range []int{available, leased, expired, breaking, broken} {
		if s.phases(out)&phase == 0 {
			continue
		}
		n, code := s.execute(phase, in.req, out)
		switch {
		case out.unknown && (code != 0 || n == s || !in.answers.allow(n, in.req)), !out.unknown && code != out.code:
			continue
		case out.shown && !r.allowsRecord(&n, out), !n.allowsRemaining(out):
			continue
		}
		next = append(next, n)
	}
	return next
}

// execute executes a request in the given phase. It returns the new state or, for a refusal, its code.
func (s state) execute(phase int, req lease.Request, out *output) (state, lease.Code) {
	locked := phase&(leased|breaking) != 0
	same := func(id lease.ID) bool { return id == s.id && !id.IsZero() }
	switch req.Action {
	case lease.ActionAcquire:
		switch {
		case locked && !same(req.Proposed):
			return s, lease.ErrHeldByOther
		case phase == breaking:
			return s, lease.ErrBreaking
		}
		n := state{id: req.Proposed, owner: req.Owner, duration: int64(req.Duration), epoch: s.epoch + 1, at: s.at, wrote: s.wrote}
		n.unsure = s.unsure || s.id.IsZero() // the epoch of an unknown name can rise at any time
		return n.started(out), 0
	case lease.ActionRenew:
		switch {
		case phase == available || !same(req.ID):
			return s, lease.ErrIDMismatch
		case s.broken:
			return s, lease.ErrBroken
		}
		return s.started(out), 0
	case lease.ActionChange:
		switch {
		case !locked:
			return s, lease.ErrNotPresent
		case phase == leased && same(req.Proposed):
			return s, 0
		case !same(req.ID):
			return s, lease.ErrIDMismatch
		case phase == breaking:
			return s, lease.ErrBreaking
		}
		s.id = req.Proposed
		if req.Owner != "" {
			s.owner = req.Owner
		}
		s.epoch++
		return s.written(out), 0
	case lease.ActionRelease:
		if phase == available || !same(req.ID) {
			return s, lease.ErrIDMismatch
		}
		s.released = true
		return s.written(out), 0
	case lease.ActionBreak:
		if phase == available {
			return s, lease.ErrNotPresent
		}
		return s.afterBreak(phase, req.Period, out), 0
	case lease.ActionRead, lease.ActionWrite:
		switch {
		case !req.ID.IsZero() && same(req.ID) && locked:
			return s, 0
		case !req.ID.IsZero() && locked:
			return s, lease.ErrIDMismatch
		case !req.ID.IsZero() && same(req.ID):
			return s, lease.ErrEnded
		case !req.ID.IsZero():
			return s, lease.ErrNotPresent
		case req.Action == lease.ActionRead:
			return s, 0
		case locked:
			return s, lease.ErrIDMissing
		}
		if s.id.IsZero() {
			return s, 0 // the record has no ID to forget, so the request writes nothing
		}
		s = state{epoch: s.epoch, at: s.at, wrote: s.wrote}
		return s.written(out), 0
	}
	return s, lease.ErrAction
}

func (s state) written(out *output) state {
	if out.exact {
		s.wrote = out.from
	}
	return s
}

// An acquire or a renewal starts the duration of the lease again, at a time that is not known exactly. The
// method started returns the state after that. If out.exact is true, the start lies between the previous
// write and the time in the answer. If out.exact is false, the start is the time at which the authority
// executed the request.
func (s state) started(out *output) state {
	s.released, s.broken, s.over = false, false, false
	switch {
	case time.Duration(s.duration) == lease.Infinite:
		s.lo, s.hi = never, never
	case out.exact:
		s.lo, s.hi = s.wrote+s.duration, out.to+s.duration
	case out.to == never:
		lo := max(out.from-out.epsilon, s.wrote) + s.duration
		if renewed := s.hi == never && s.lo <= lo; !renewed { // otherwise the end is already as uncertain
			s.lo, s.hi = lo, never
		}
	default:
		s.lo, s.hi = out.from-out.epsilon+s.duration, out.to+out.epsilon+s.duration
	}
	return s.written(out)
}

// afterBreak returns s after a break. A break with a period can only make the lock end earlier. A break
// without a period ends an infinite lock at once, and does not change the end of a finite lock.
func (s state) afterBreak(phase int, p lease.Period, out *output) state {
	period, given := p.Get()
	s.over = s.over || phase&(leased|breaking) == 0 || given && period == 0 || !given && s.lo == never
	if phase&(leased|breaking) != 0 {
		lo, hi := s.lo, s.hi
		switch {
		case given:
			from, to := out.from-out.epsilon, out.to
			if out.exact {
				from = s.wrote
			}
			if to != never {
				to += out.epsilon + int64(period)
			}
			lo, hi = min(lo, from+int64(period)), min(hi, to)
		case s.lo == never: // an infinite lease ends at once
			lo, hi = out.from-out.epsilon, out.to
			if out.exact {
				lo = s.wrote
			}
		}
		s.lo, s.hi = lo, hi
	} else {
		s.lo = min(s.lo, out.from)
		s.hi = max(s.lo, min(s.hi, out.from))
	}
	if s.broken {
		return s // the request may have written nothing
	}
	s.broken = true
	return s.written(out)
}

// allowsRecord reports whether the record in the answer is possible in the state s. If the record contains
// the exact end of the lock, it also sets s.lo and s.hi to that end, unless Options.Observed is set.
func (r *Recorder) allowsRecord(s *state, out *output) bool {
	rec := out.record
	isLast := rec.ID == s.id && rec.Owner == s.owner && int64(rec.Duration) == s.duration
	risen := s.unsure || s.id.IsZero() || s.released && rec.ID.IsZero()
	if rec.Epoch < s.epoch || rec.Epoch > s.epoch && !risen || rec.State != lease.Available && !isLast {
		return false
	}
	s.epoch, s.unsure = rec.Epoch, false
	var want int
	switch rec.State {
	case lease.Available: // the record may keep the last ID until the next write
		kept := !s.id.IsZero() && isLast
		return (s.id.IsZero() || s.released) && (kept || rec == lease.Record{Epoch: rec.Epoch})
	case lease.Leased:
		want = leased
	case lease.Expired:
		want = expired
	case lease.Breaking:
		want = breaking
	case lease.Broken:
		want = broken
	}
	if s.phases(out)&want == 0 {
		return false
	}
	if r.options.Observed || !rec.State.Locked() {
		return true
	}
	if rec.Until.IsZero() {
		return s.hi == never
	}
	until := r.instant(rec.Until)
	if until < s.lo || until > s.hi {
		return false
	}
	s.lo, s.hi = until, until
	return true
}

// allowsRemaining reports whether the MinRemaining of the answer is possible in the state s. It is possible
// if the lock can last for at least MinRemaining, counted from the earliest time at which the client can have
// sent the request.
func (s *state) allowsRemaining(out *output) bool {
	switch {
	case out.sure == 0 || s.hi == never || out.late:
		return true
	case out.sure == lease.Infinite:
		return false
	}
	return !s.id.IsZero() && !s.released && out.sent-out.epsilon+int64(out.sure) <= s.hi
}

func byName(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	at := map[string]int{}
	for _, op := range history {
		name := op.Input.(input).name
		i, ok := at[name]
		if !ok {
			i = len(parts)
			at[name] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

func describe(in, out any) string {
	req, o := in.(input).req, out.(output)
	if in.(input).last {
		return "the end of the history"
	}
	s := fmt.Sprintf("%v", req.Action)
	if !req.ID.IsZero() {
		s += fmt.Sprintf(" %.8s", req.ID)
	}
	if !req.Proposed.IsZero() {
		s += fmt.Sprintf(" -> %.8s", req.Proposed)
	}
	switch {
	case o.unknown:
		return s + ": unknown"
	case o.code != 0:
		s += ": " + o.code.String()
	}
	return s + fmt.Sprintf(" (%v, epoch %d, at %v)", o.record.State, o.record.Epoch, time.Duration(o.from))
}
