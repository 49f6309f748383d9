package lease

import (
	"fmt"
	"time"
)

// Limits restrict the durations that an authority grants. A zero field sets no limit.
//
// All authorities over the same leases should have the same Limits, because an authority shortens a stored
// lease that exceeds its Limits, so that the lease ends earlier than its holder expects. Before you lower
// MaxDuration, lower the durations that all holders request, and wait until the leases with longer durations
// have ended.
type Limits struct {
	MinDuration time.Duration // the shortest duration of an acquire
	MaxDuration time.Duration // the longest finite duration of an acquire; Infinite is always allowed
	MaxPeriod   time.Duration // the longest break period
}

// A Limiter has Limits. Limiter is an optional interface of a [Store].
type Limiter interface {
	// Limits returns the limits for the leases in the Store. The result is always the same. Limits must be
	// safe for concurrent use. An Authority from [NewAuthority] applies the limits to every request and to
	// every record that it loads.
	Limits() Limits
}

// Validate returns nil if the Limits are valid, and otherwise a [*FieldError] with the Code [ErrOption]. No
// field of the Limits may be negative. If MaxDuration is not zero, MinDuration must not be longer than
// MaxDuration.
func (l Limits) Validate() error {
	switch {
	case l.MinDuration < 0:
		return &FieldError{"Limits.MinDuration", l.MinDuration.String(), "must not be negative", ErrOption}
	case l.MaxDuration < 0:
		return &FieldError{"Limits.MaxDuration", l.MaxDuration.String(), "must not be negative", ErrOption}
	case l.MaxPeriod < 0:
		return &FieldError{"Limits.MaxPeriod", l.MaxPeriod.String(), "must not be negative", ErrOption}
	case l.MaxDuration > 0 && l.MinDuration > l.MaxDuration:
		return &FieldError{"Limits.MinDuration", formatDuration(l.MinDuration), "must not be above MaxDuration, " + formatDuration(l.MaxDuration), ErrOption}
	}
	return nil
}

// Check returns nil if the request is within the limits and its arguments are valid, so that [Step] can grant
// it in at least one state of the lease. Otherwise Check returns a [*FieldError] that names the field, its
// value and the bound, and has the Code that Step returns for the bad argument.
//
// For versions before [Version20120212], Check ignores the period of a break, and assumes a duration of 60
// seconds for an acquire.
func (l Limits) Check(req Request) error { return l.check(&req) }

// check is like Check, but does not copy the request.
func (l Limits) check(req *Request) error {
	switch code := check(req); code {
	case 0:
	case ErrVersion:
		if req.Version.known() {
			return &FieldError{"Request.Action", req.Action.String(), "needs version 2012-02-12 or newer, not " + req.Version.String(), code}
		}
		return req.Version.validate()
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
	if !req.Version.durationRequired() {
		d = oldDuration
	}
	isOutside := d < l.MinDuration || l.MaxDuration > 0 && d > l.MaxDuration
	switch {
	case req.Action == ActionAcquire && d != Infinite && isOutside:
		bound := "must be infinite or at least " + formatDuration(l.MinDuration)
		switch {
		case l.MinDuration == 0:
			bound = fmt.Sprintf("must be infinite or at most %v", l.MaxDuration)
		case l.MaxDuration > 0:
			bound = fmt.Sprintf("must be infinite or from %v to %s", l.MinDuration, formatDuration(l.MaxDuration))
		}
		return &FieldError{"Request.Duration", d.String(), bound, ErrDuration}
	case req.Action == ActionBreak && !req.Version.old() && l.MaxPeriod > 0 && req.Period.d > l.MaxPeriod:
		return &FieldError{"Request.Period", req.Period.String(), fmt.Sprintf("must be from 0s to %v", l.MaxPeriod), ErrPeriod}
	}
	return nil
}

// Bound returns the duration and the remaining time of a stored record, shortened to the longest time that
// the Limits allow. The longest time is MaxDuration for a finite lease, and MaxPeriod for the break of an
// infinite lease. An infinite duration is never shortened. A record can exceed the limits if it was written
// by hand or under other limits.
//
// [Decide] applies Bound to every record, so most stores need not call it. Only a store that itself counts
// down how much time a lease has left, such as a Store of package engine, must call Bound.
func (l Limits) Bound(duration, left time.Duration) (boundedDuration, boundedLeft time.Duration) {
	if duration == Infinite {
		return Infinite, atMost(left, l.MaxPeriod)
	}
	return atMost(duration, l.MaxDuration), atMost(left, l.MaxDuration)
}

// atMost returns d, or limit if d is longer. A limit of 0 means no limit.
func atMost(d, limit time.Duration) time.Duration {
	if limit == 0 {
		return d
	}
	return min(d, limit)
}

// clamp applies [Limits.Bound] to a record. A zero r.Until stays zero.
func (l Limits) clamp(r *Record, now time.Time) {
	claimed := r.Until.Sub(now)
	duration, left := l.Bound(r.Duration, claimed)
	r.Duration = duration
	if left < claimed && !r.Until.IsZero() {
		r.Until, _ = addTime(now, left)
	}
}
