package majority

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
)

// Options configure a [Decider]. All members of a cluster must have the same Options. A nil *Options means
// the defaults. If a field is zero, its default is used.
type Options struct {
	// Delay is how long a part with fewer than half of the members waits before it requests the lease.
	// Default: 2s.
	Delay time.Duration

	// Timeout is how long a member waits for an answer, including all retries. A decision takes at most as
	// long as Delay and Timeout together. Default: 5s.
	Timeout time.Duration

	// Spread is the longest time that may pass between the first and the last call of Decide after the same
	// split of the cluster. The lease lasts for twice the sum of Delay, Timeout and Spread. By default, this
	// is 54 s. The authority must allow leases of this duration. Default: 20s.
	Spread time.Duration

	// Interval is the time between two requests of a member. Default: Timeout/10.
	Interval time.Duration

	// Clock measures the times in the other fields. Default: package time.
	Clock lease.Clock
}

func (o *Options) complete() (c Options, err error) {
	if o != nil {
		c = *o
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	for _, f := range []struct {
		field *time.Duration
		or    time.Duration
		name  string
	}{
		{&c.Delay, 2 * time.Second, "Delay"},
		{&c.Timeout, 0, "Timeout"},
		{&c.Spread, 20 * time.Second, "Spread"},
		{&c.Interval, max(c.Timeout/10, time.Millisecond), "Interval"},
	} {
		if *f.field == 0 {
			*f.field = f.or
		}
		if *f.field < time.Millisecond || *f.field > 24*time.Hour {
			err = errors.Join(err, &lease.FieldError{Field: "Options." + f.name, Value: fmt.Sprint(*f.field), Bound: "must be from 1ms to 24h; did you forget the unit?", Code: lease.ErrOption})
		}
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return c, err
}

// A Decider decides whether one member of a cluster survives a split. A Decider is safe for concurrent use.
type Decider struct {
	authority lease.Authority
	name      string
	self      string
	o         Options
	limit     time.Duration // how long one decision may take
	window    time.Duration // how long other parts may still decide, counted from a grant
	hold      time.Duration // the duration of the lease

	judge func(d *Decider, v *View, o observation) step // the function judge, except in tests
	newID func() lease.ID                               // returns a random ID, except in tests

	busy      chan struct{} // has an element while a decision or its release is running
	held      lease.ID      // the ID of the last grant on which this member relied; guarded by busy
	heldUntil time.Time     // when that grant has certainly ended; guarded by busy
	newest    lease.Token   // the newest token with which this member has survived, or that Check has read; guarded by busy
}

// New returns a Decider for the member self. New sends no request, so call [Decider.Check] when the program
// starts. All members of the cluster must use a lease with the same name, and nothing else may use this
// lease. If an argument or an option is out of range, New returns a [*lease.FieldError].
func New(a lease.Authority, name, self string, o *Options) (*Decider, error) {
	if a == nil {
		return nil, fields.Missing("New.a")
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	if self == "" || len(self) > 900 || lease.CheckOwner(self) != nil {
		return nil, &lease.FieldError{Field: "New.self", Value: fmt.Sprintf("%.100q", self), Bound: "must have 1 to 900 bytes that an owner may have", Code: lease.ErrOwner}
	}
	c, err := o.complete()
	if err != nil {
		return nil, err
	}
	d := &Decider{authority: a, name: name, self: self, o: c, judge: judge, busy: make(chan struct{}, 1)}
	d.newID = func() lease.ID { return lease.ID(uuid.New()) }
	d.limit = c.Delay + c.Timeout
	d.window = c.Spread + d.limit
	d.hold = 2 * d.window
	return d, nil
}
