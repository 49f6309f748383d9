package lease

import (
	"fmt"
	"time"
)

// Limits are the durations that an authority grants. The zero value of a field sets no
// limit; so the zero Limits admit whatever [Step] can grant.
type Limits struct {
	MinDuration time.Duration // shortest duration of an Acquire
	MaxDuration time.Duration // longest finite duration of an Acquire; Infinite is always admitted
	MaxPeriod   time.Duration // longest break period
}

// AzureLimits are the ones of the Blob service: "A non-infinite lease can be between 15
// and 60 seconds", and a break period "between 0 and 60 seconds".
var AzureLimits = Limits{MinDuration: 15 * time.Second, MaxDuration: 60 * time.Second, MaxPeriod: 60 * time.Second}

// A Limiter is an optional ability of a [Store]: the Limits that [NewAuthority] holds every
// request, and every record it loads, against.
type Limiter interface{ Limits() Limits }

// Validate returns nil if no field is negative and MinDuration is not above MaxDuration.
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

// Check returns nil if [Step] could grant the request in some state and it keeps the
// limits. Otherwise it returns a [*FieldError] that names the field, its value and the
// bound, with the Code that Step has for it. In the dialect before [Version20120212] a break
// has no period, and the duration of an Acquire is always 60 seconds.
func (l Limits) Check(req Request) error { return l.check(&req) }

// check is Check of a request that is not copied.
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

// clamp bounds what a record can claim at now: a finite lease, and the break of one, counts
// as granted for at most MaxDuration and as ending at most that long from now on; the break
// of an infinite one as ending at most MaxPeriod from now on. It protects against a record
// that was written by hand, or under other limits.
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
