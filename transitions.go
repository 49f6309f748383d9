package lease

import (
	"fmt"
	"time"
)

// An Action is an operation on a lease, or on the resource that the lease protects. The five actions from
// [ActionAcquire] to [ActionBreak] are the modes of Azure's operation Lease Blob. [ActionRead] stands for a
// read of the resource, and [ActionWrite] for a write. An authority refuses a request with the zero Action.
type Action uint8

const (
	ActionAcquire Action = iota + 1 // acquire a lease that is not locked, or start the duration again if it is Leased under the same ID
	ActionRenew                     // start the duration again
	ActionChange                    // give the lease to another ID
	ActionRelease                   // end the lease at once, under its ID
	ActionBreak                     // end the lease after a period, without knowing its ID
	ActionRead                      // read the resource; changes nothing
	ActionWrite                     // write the resource; without an ID, also clear the record of the last lease
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

// MarshalText returns the name of the action, or an error if the action is unknown.
func (a Action) MarshalText() ([]byte, error) { return marshalName(actionNames[:], int(a), "action") }

// UnmarshalText sets *a to the action with the given name. The name must be in lower case. If the name is
// unknown, UnmarshalText returns an error and leaves *a unchanged.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := unmarshalName(actionNames[:], text, "action")
	if err == nil {
		*a = Action(i)
	}
	return err
}

// A Period is an argument of a break. The Lease Blob document calls it "the proposed duration of seconds that
// the lease should continue before it is broken". The zero Period means that no period is given: the break
// lets a finite lease run until its end, and ends an infinite lease at once. Grace(0) ends any lease at once.
type Period struct {
	d   time.Duration
	set bool
}

// Grace returns the break period d. A break with Grace(0) ends the lease at once.
func Grace(d time.Duration) Period { return Period{d, true} }

// Get returns the period and true, or 0 and false if no period is given.
func (p Period) Get() (time.Duration, bool) { return p.d, p.set }

// String returns the text of the period, such as "15s", "infinite" for [Infinite], and "absent" if no period is
// given.
func (p Period) String() string {
	if !p.set {
		return "absent"
	}
	return formatDuration(p.d)
}

// A Request is one action with its arguments. Fields that the action does not use are ignored: a renewal
// ignores the Duration, because "a lease duration cannot be changed using renew or change". Requests are
// comparable with ==.
type Request struct {
	_ struct{} // composite literals must name the fields

	Action   Action        // must be given
	ID       ID            // ActionRenew, ActionChange, ActionRelease; optional for ActionRead and ActionWrite
	Proposed ID            // ActionAcquire, ActionChange
	Owner    string        // ActionAcquire, ActionChange; a label for people; if it is empty, ActionChange does not change the owner
	Duration time.Duration // ActionAcquire; positive, or Infinite
	Period   Period        // ActionBreak
	Version  Version       // the dialect, by default the newest; some authorities refuse older ones
}

// Step applies one request to a record. The parameter now is the authority's time. The outcomes are exactly
// those in the two tables of the Lease Blob document.
//
// If the request is granted, Step returns the new record and a nil error. If the request is refused, or an
// argument is missing or out of range, Step returns r.At(now) and a [Code].
//
// Step is a pure function: it reads no clock, draws no random numbers, keeps no state and allocates no
// memory. Step is safe for concurrent use.
//
// Step assumes that r is valid ([Record.Validate]), and that the time does not go back from one call to the
// next. If r is valid, the returned record is valid too.
//
// A record cannot hold a time after the year 9999. A lease that would end later becomes infinite, and a break
// that would end later ends at the last instant of that year. If the given time is before the year 1, Step
// refuses the request with [ErrTime].
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

// step is like Step, but changes *r. Call step after r.pass(now), and only if check(req) has returned 0.
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

// check returns the Code for an argument that is missing or out of range, or 0 if all arguments are valid.
func check(req *Request) Code {
	if !req.Version.known() {
		return ErrVersion
	}
	switch req.Action {
	case ActionAcquire:
		if req.Proposed.IsZero() {
			return ErrProposed
		}
		if req.Version.durationRequired() && req.Duration <= 0 {
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

// acquire implements these sentences of the Lease Blob document:
//
//	If the blob does not have an active lease, the Blob service creates a lease on the
//	blob [...]. If the blob has an active lease, you can only request a new lease using the
//	active lease ID, but you can specify a new x-ms-lease-duration.
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
	if !req.Version.durationRequired() {
		d = oldDuration
	}
	r.ID, r.Owner, r.Duration = req.Proposed, req.Owner, d
	r.Epoch++
	startLease(r, now)
	return 0
}

// oldDuration is the duration of every lease in the older dialect: "In versions before 2012-02-12, the lock
// duration is 60 seconds."
const oldDuration = 60 * time.Second

// The function startLease makes the record Leased. If the Duration of the record is finite, the lease ends
// after this Duration. If that end would be later than lastTime, the lease becomes infinite.
func startLease(r *Record, now time.Time) {
	r.State, r.Until = Leased, time.Time{}
	if r.Duration == Infinite {
		return
	}
	until, fits := addTime(now, r.Duration)
	if !fits {
		r.Duration = Infinite
		return
	}
	r.Until = until
}

// addTime returns now+d and true, or lastTime and false if now+d is later than lastTime.
func addTime(now time.Time, d time.Duration) (time.Time, bool) {
	if sec := now.Unix(); sec <= lastUnix {
		sec += int64(d / time.Second)
		t := time.Unix(sec, int64(now.Nanosecond())+int64(d%time.Second)) // without a monotonic reading
		if t.Unix() <= lastUnix {
			return t.UTC(), true
		}
	}
	return lastTime, false
}

// renew implements these sentences of the Lease Blob document:
//
//	The lease can be renewed if the lease ID specified on the request matches that
//	associated with the blob. Note that the lease may be renewed even if it has expired as
//	long as the blob has not been modified or leased again since the expiration of that
//	lease. When you renew a lease, the lease duration clock resets.
func renew(r *Record, req *Request, now time.Time) Code {
	switch {
	case r.ID != req.ID:
		return ErrIDMismatch
	case r.State == Available && !req.Version.renewsReleased():
		return ErrIDMismatch
	case r.State == Breaking || r.State == Broken:
		return ErrBroken // "Once a lease is broken, it cannot be renewed."
	}
	startLease(r, now)
	return 0
}

// change implements these sentences of the Lease Blob document:
//
//	Changes the lease ID of an active lease. A change must include the current lease ID in
//	x-ms-lease-id and a new lease ID in x-ms-proposed-lease-id.
//
// According to the outcome table, a change is also granted if the lease is Leased and already has the
// proposed ID. Such a change leaves the record as it is, even if the other ID in the request is wrong. A
// client can therefore repeat a change whose answer was lost.
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

// release implements this sentence of the Lease Blob document:
//
//	The lease may be released if the lease ID specified on the request matches that
//	associated with the blob.
//
// A release is granted in every state except Available, and ends a break early. The record keeps the ID,
// because a released lease can still be renewed or broken in the older dialect.
func release(r *Record, req *Request) Code {
	if r.State == Available || r.ID != req.ID {
		return ErrIDMismatch
	}
	r.State, r.Until = Available, time.Time{}
	return 0
}

// breaks implements these sentences of the Lease Blob document:
//
//	Any authorized request can break the lease; the request is not required to specify a
//	matching lease ID.
//
//	This break period is only used if it is shorter than the time remaining on the lease.
//
//	If this header does not appear with a break operation, a fixed-duration lease breaks
//	after the remaining lease period elapses, and an infinite lease breaks immediately.
func breaks(r *Record, req *Request, now time.Time) Code {
	switch r.State {
	case Available:
		if r.ID.IsZero() || !req.Version.breaksReleased() {
			return ErrNotPresent
		}
	case Breaking, Broken:
		if !req.Version.breaksAgain() {
			return ErrAlreadyBroken
		}
	}
	period, given := req.Period.Get()
	given = given && !req.Version.old()
	until := r.Until // zero if the lease is infinite or is not locked
	if given && r.State.Locked() {
		if end, _ := addTime(now, period); until.IsZero() || end.Before(until) {
			until = end
		}
	}
	r.State, r.Until = Breaking, until
	if !now.Before(until) {
		r.State, r.Until = Broken, time.Time{}
	}
	return 0
}

// use decides a read, or a write with a lease ID. A read without an ID is always granted. A request with an
// ID follows this sentence of the Lease Blob document:
//
//	the operation only proceeds if the lease ID included with the request is valid.
func use(r *Record, req *Request) Code {
	switch {
	case req.ID.IsZero():
		return 0
	case r.State.Locked() && r.ID == req.ID:
		return 0
	case r.State.Locked():
		return ErrIDMismatch
	case r.ID == req.ID:
		return ErrEnded
	}
	return ErrNotPresent
}

// write decides a write. A write without a lease ID clears the last ID, according to the Lease Blob document:
//
//	Once a lease has expired, the lease ID is maintained by the Blob service until the blob
//	is modified or leased again.
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
