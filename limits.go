package lease

import (
	"fmt"
	"time"
)

// Limits restrict the durations that an authority grants. A zero field sets no limit.
type Limits struct {
	MinDuration time.Duration // the shortest duration of an acquire
	MaxDuration time.Duration // the longest finite duration of an acquire; Infinite is always allowed
	MaxPeriod   time.Duration // the longest break period
}

// AzureLimits are the limits of the Azure Blob service, according to its documentation:
//
//	A non-infinite lease can be between 15 and 60 seconds.
//	[A break period is] between 0 and 60 seconds.
var AzureLimits = Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

// A Limiter has Limits. It is an optional interface of a [Store].
type Limiter interface {
	// Limits returns the limits for the leases in the Store. All calls must return the same limits.
	// An Authority from [NewAuthority] applies these limits to every request and to every record that
	// it loads.
	Limits() Limits
}

// Validate returns nil if no field is negative and MinDuration is at most MaxDuration. If MaxDuration
// is 0, any MinDuration is valid. If l is not valid, Validate returns a [*FieldError] with the Code
// [ErrOption].
func (l Limits) Validate() error {
	switch {
	case l.MinDuration < 0:
		return &FieldError{"Limits.MinDuration", l.MinDuration.String(), "must not be negative", ErrOption}
	case l.MaxDuration < 0:
		return &FieldError{"Limits.MaxDuration", l.MaxDuration.String(), "must not be negative", ErrOption}
	case l.MaxPeriod < 0:
		return &FieldError{"Limits.MaxPeriod", l.MaxPeriod.String(), "must not be negative", ErrOption}
	case l.MaxDuration > 0 && l.MinDuration > l.MaxDuration:
		return &FieldError{"Limits.MinDuration", l.MinDuration.String(), "must not be above MaxDuration, " + l.MaxDuration.String(), ErrOption}
	}
	return nil
}

// Check returns nil if the request is within the limits and its arguments are valid. If not, Check
// returns a [*FieldError] that names the field, its value and the bound. The error has the same Code
// that [Step] returns for the bad argument. If Check returns nil, [Step] can grant the request in at
// least one state of the lease.
//
// For versions before [Version20120212], Check ignores the period of a break. For an acquire with
// such a version, Check assumes a duration of 60 seconds.
func (l Limits) Check(req Request) error { return l.check(&req) }

// check is like Check, but does not copy the request.
func (l Limits) check(req *Request) error {
	switch code := check(req); code {
	case 0:
	case ErrVersion:
		if req.Version.known() {
			return &FieldError{"Request.Action", req.Action.String(), "needs version 2012-02-12 or newer, not " + req.Version.String(), code}
		}
		return req.Version.Validate()
	case ErrAction:
		return &FieldError{"Request.Action", req.Action.String(), "must be acquire, renew, change, release, break, read or write", code}
	case ErrID:
		return &FieldError{"Request.ID", "none", "must be given to " + req.Action.String(), code}
	case ErrProposed:
		return &FieldError{"Request.Proposed", "none", "must be given to " + req.Action.String(), code}
	case ErrDuration:
		return &FieldError{"Request.Duration", req.Duration.String(), "must be positive", code}
	case ErrPeriod:
		return &FieldError{"Request.Period", req.Period.String(), "must not be negative", code}
	case ErrOwner:
		return &FieldError{"Request.Owner", quote(req.Owner), labelBound, code}
	}
	d := req.Duration
	if !req.Version.DurationRequired() {
		d = oldDuration
	}
	switch {
	case req.Action == ActionAcquire && d != Infinite && (d < l.MinDuration || l.MaxDuration > 0 && d > l.MaxDuration):
		bound := fmt.Sprintf("must be infinite or at least %v", l.MinDuration)
		if l.MaxDuration > 0 {
			bound = fmt.Sprintf("must be infinite or from %v to %v", l.MinDuration, l.MaxDuration)
		}
		return &FieldError{"Request.Duration", d.String(), bound, ErrDuration}
	case req.Action == ActionBreak && !req.Version.old() && l.MaxPeriod > 0 && req.Period.d > l.MaxPeriod:
		return &FieldError{"Request.Period", req.Period.String(), fmt.Sprintf("must be from 0s to %v", l.MaxPeriod), ErrPeriod}
	}
	return nil
}

// clamp shortens the remaining time of a record if that time exceeds the limits. A finite lease and
// its break end at most MaxDuration after now. The break of an infinite lease ends at most MaxPeriod
// after now. A record can exceed the limits if it was written by hand or under other limits.
func (l Limits) clamp(r *Record, now time.Time) {
	most := l.MaxDuration
	if r.Duration == Infinite {
		most = l.MaxPeriod
	} else if most > 0 {
		r.Duration = min(r.Duration, most)
	}
	if most > 0 && !r.Until.IsZero() && r.Until.Sub(now) > most {
		r.Until, _ = after(now, most)
	}
}
