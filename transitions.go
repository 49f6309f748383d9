package lease

import (
	"fmt"
	"time"
)

// An Action is something that is done to a lease or to the resource behind it. The first five are
// the modes of the Lease Blob operation. ActionRead and ActionWrite are the uses of the resource. The
// zero Action is none, and refused.
type Action uint8

const (
	ActionAcquire Action = iota + 1 // take a lease that is not locked, or start the own lease again
	ActionRenew                     // start the duration again
	ActionChange                    // give the lease to another ID
	ActionRelease                   // give the lease up
	ActionBreak                     // end the lease after a period, without knowing its ID
	ActionRead                      // read the resource; changes nothing
	ActionWrite                     // write the resource; without an ID it forgets the last lease
)

var actionNames = [...]string{
	ActionAcquire: "acquire", ActionRenew: "renew", ActionChange: "change", ActionRelease: "release",
	ActionBreak: "break", ActionRead: "read", ActionWrite: "write",
}

// String returns the name of the action in lower case.
func (a Action) String() string {
	if a > 0 && int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// MarshalText writes the name of the action; an unknown action is an error.
func (a Action) MarshalText() ([]byte, error) { return marshalName(actionNames[:], int(a), "action") }

// UnmarshalText reads the name of an action, in lower case.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := unmarshalName(actionNames[:], text, "action")
	if err == nil {
		*a = Action(i)
	}
	return err
}

// A Period is the break period of a break: "the proposed duration of seconds that the
// lease should continue before it is broken". The zero Period is an absent one, which is
// not Grace(0): without a period a lease of finite duration breaks when its time is up, and
// an infinite one at once.
type Period struct {
	d   time.Duration
	set bool
}

// Grace returns the Period d; Grace(0) breaks at once.
func Grace(d time.Duration) Period { return Period{d, true} }

// Get returns the period, and false if it is absent.
func (p Period) Get() (time.Duration, bool) { return p.d, p.set }

// String returns the period as a Duration, or "absent".
func (p Period) String() string {
	if !p.set {
		return "absent"
	}
	return p.d.String()
}

// A Request is one action with its arguments. Fields that the action does not have are ignored: in
// particular, "a lease duration cannot be changed using renew or change". Requests are comparable.
type Request struct {
	_ struct{} // fields by name only

	Action   Action        // must be given
	ID       ID            // ActionRenew, ActionChange, ActionRelease; optional for ActionRead and ActionWrite
	Proposed ID            // ActionAcquire, ActionChange
	Owner    string        // ActionAcquire; ActionChange, where empty keeps the record's; a label, may be empty
	Duration time.Duration // ActionAcquire; positive, or Infinite
	Period   Period        // ActionBreak
	Version  Version       // the dialect; zero is the newest; a native authority may refuse old ones
}

// Step is the machine: it applies one request to a record at the authority's time now. The outcome
// is that of the two tables of the Lease Blob document, cell by cell.
//
// If the request is granted, Step returns the record after the action and nil. If it is refused, or
// if an argument is missing or out of range, Step returns r.At(now) and a [Code].
//
// Step is pure: it reads no clock, draws no randomness, remembers nothing, allocates nothing, and
// may be called by several goroutines at once. It assumes that r is valid ([Record.Validate]), and
// that the authority never calls it with an earlier now than before. Then the record that it returns
// is valid too.
//
// An end that cannot be written saturates. A lease that would end after the year 9999 is granted as
// infinite, and a break that would end later ends then. A now before the year 1 is refused with
// [ErrTime].
func Step(r Record, req Request, now time.Time) (next Record, err error) {
	next = r
	next.pass(now)
	code := check(&req)
	if code == 0 {
		code = step(&next, &req, now)
	}
	if code != 0 {
		return next, code
	}
	return next, nil
}

// step is Step in place. The arguments were checked, and At was applied to the record.
func step(r *Record, req *Request, now time.Time) Code {
	if now.Unix() < firstUnix {
		return ErrTime
	}
	switch req.Action {
	case ActionAcquire:
		return acquire(r, req, now)
	case ActionRenew:
		return renew(r, req, now)
	case ActionChange:
		return change(r, req)
	case ActionRelease:
		return release(r, req)
	case ActionBreak:
		return breaks(r, req, now)
	case ActionWrite:
		return write(r, req)
	}
	return use(r, req)
}

// check checks the arguments that the action needs.
func check(req *Request) Code {
	if !req.Version.known() {
		return ErrVersion
	}
	switch req.Action {
	case ActionAcquire:
		if req.Proposed.IsZero() {
			return ErrProposed
		}
		if req.Version.DurationRequired() && req.Duration <= 0 {
			return ErrDuration
		}
	case ActionRenew, ActionRelease:
		if req.ID.IsZero() {
			return ErrID
		}
		return 0
	case ActionChange:
		if req.Version.old() {
			return ErrVersion // "change: Version 2012-02-12 and newer."
		}
		if req.ID.IsZero() {
			return ErrID
		}
		if req.Proposed.IsZero() {
			return ErrProposed
		}
	case ActionBreak:
		if req.Period.d < 0 && !req.Version.old() {
			return ErrPeriod
		}
		return 0
	case ActionRead, ActionWrite:
		return 0
	default:
		return ErrAction
	}
	if req.Owner != "" {
		return checkLabel(req.Owner, ErrOwner)
	}
	return 0
}

// "If the blob does not have an active lease, the Blob service creates a lease on the
// blob [...]. If the blob has an active lease, you can only request a new lease using the
// active lease ID, but you can specify a new x-ms-lease-duration".
func acquire(r *Record, req *Request, now time.Time) Code {
	switch {
	case r.State.Locked() && r.ID != req.Proposed:
		return ErrHeldByOther
	case r.State == Breaking:
		return ErrBreaking
	case r.Epoch >= epochLimit-1:
		return ErrEpochLimit
	}
	d := req.Duration
	if !req.Version.DurationRequired() {
		d = oldDuration
	}
	r.ID, r.Owner, r.Duration = req.Proposed, req.Owner, d
	r.Epoch++
	start(r, now)
	return 0
}

// "In versions before 2012-02-12, the lock duration is 60 seconds."
const oldDuration = 60 * time.Second

// start makes the record Leased for its duration from now on.
func start(r *Record, now time.Time) {
	r.State, r.Until = Leased, time.Time{}
	if r.Duration == Infinite {
		return
	}
	until, fits := after(now, r.Duration)
	if !fits {
		r.Duration = Infinite
		return
	}
	r.Until = until
}

// after returns now+d and true, or the last time that can be written and false if now+d is later.
func after(now time.Time, d time.Duration) (time.Time, bool) {
	if sec := now.Unix(); sec <= lastUnix {
		sec += int64(d / time.Second)
		t := time.Unix(sec, int64(now.Nanosecond())+int64(d%time.Second)) // has no monotonic reading
		if t.Unix() <= lastUnix {
			return t.UTC(), true
		}
	}
	return lastTime, false
}

// "The lease can be renewed if the lease ID specified on the request matches that
// associated with the blob. Note that the lease may be renewed even if it has expired as
// long as the blob has not been modified or leased again since the expiration of that
// lease. When you renew a lease, the lease duration clock resets."
func renew(r *Record, req *Request, now time.Time) Code {
	switch {
	case r.ID != req.ID:
		return ErrIDMismatch
	case r.State == Available && !req.Version.RenewsReleased():
		return ErrIDMismatch
	case r.State == Breaking || r.State == Broken:
		return ErrBroken // "Once a lease is broken, it cannot be renewed."
	}
	start(r, now)
	return 0
}

// "Changes the lease ID of an active lease. A change must include the current lease ID in
// x-ms-lease-id and a new lease ID in x-ms-proposed-lease-id." The table also grants a
// change to the ID that is in force already, from whatever ID, so that a change whose
// answer was lost can be sent again; it changes nothing.
func change(r *Record, req *Request) Code {
	switch {
	case !r.State.Locked():
		return ErrNotPresent
	case r.State == Leased && r.ID == req.Proposed:
		return 0
	case r.ID != req.ID:
		return ErrIDMismatch
	case r.State == Breaking:
		return ErrBreaking
	case r.Epoch >= epochLimit-1:
		return ErrEpochLimit
	}
	r.ID = req.Proposed
	if req.Owner != "" {
		r.Owner = req.Owner
	}
	r.Epoch++
	return 0
}

// "The lease may be released if the lease ID specified on the request matches that
// associated with the blob." Whatever the state: releasing is how a break ends early. The
// ID is kept, for the dialects that can still renew or break it.
func release(r *Record, req *Request) Code {
	if r.State == Available || r.ID != req.ID {
		return ErrIDMismatch
	}
	r.State, r.Until = Available, time.Time{}
	return 0
}

// "Any authorized request can break the lease; the request is not required to specify a
// matching lease ID." "This break period is only used if it is shorter than the time
// remaining on the lease." "If this header does not appear with a break operation, a
// fixed-duration lease breaks after the remaining lease period elapses, and an infinite
// lease breaks immediately."
func breaks(r *Record, req *Request, now time.Time) Code {
	switch r.State {
	case Available:
		if r.ID.IsZero() || !req.Version.BreaksReleased() {
			return ErrNotPresent
		}
	case Breaking, Broken:
		if !req.Version.BreaksAgain() {
			return ErrAlreadyBroken
		}
	}
	period, given := req.Period.Get()
	given = given && !req.Version.old()
	until := r.Until // of a lease that is not locked, and of an infinite one, zero
	if given && r.State.Locked() {
		if end, _ := after(now, period); until.IsZero() || end.Before(until) {
			until = end
		}
	}
	r.State, r.Until = Breaking, until
	if !now.Before(until) {
		r.State, r.Until = Broken, time.Time{}
	}
	return 0
}

// use decides a use of the resource that presents an ID, or a read that presents none:
// "the operation only proceeds if the lease ID included with the request is valid".
func use(r *Record, req *Request) Code {
	switch {
	case req.ID.IsZero():
		return 0
	case r.State.Locked() && r.ID == req.ID:
		return 0
	case r.State.Locked():
		return ErrIDMismatch
	case r.ID == req.ID:
		return ErrOver
	}
	return ErrNotPresent
}

// "Once a lease has expired, the lease ID is maintained by the Blob service until the blob
// is modified or leased again." A write without an ID is that modification.
func write(r *Record, req *Request) Code {
	if !req.ID.IsZero() {
		return use(r, req)
	}
	if r.State.Locked() {
		return ErrIDMissing
	}
	*r = Record{Epoch: r.Epoch}
	return 0
}
