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

// Options configure a [Decider]. All members of a cluster must have the same Options. A nil *Options or a
// zero field means the default.
type Options struct {
	// Delay is how long a part with fewer than half of the members waits before it requests the lease.
	// Default: 2s.
	Delay time.Duration

	// Timeout is how long a member waits for an answer, with all attempts. A decision takes at most
	// Delay + Timeout. Default: 5s.
	Timeout time.Duration

	// Spread is the longest time between the calls of Decide of any two members for the same split. The lease
	// lasts 2 (Spread + Delay + Timeout), 54 s by default, which the authority must allow. Default: 20s.
	Spread time.Duration

	// Interval is the time between two requests of a member. Default: Timeout/10.
	Interval time.Duration

	// Clock measures the times above. Default: package time.
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

// A Decider decides for one member. Its methods are safe for concurrent use by several goroutines.
type Decider struct {
	authority lease.Authority
	name      string
	self      string
	o         Options
	limit     time.Duration // how long one decision may take
	window    time.Duration // how long others may still ask, counted from a grant that is believed
	hold      time.Duration // the duration of the lease

	judge func(d *Decider, v *View, o observation) step // judge, except in tests
	newID func() lease.ID                               // random, except in tests

	busy      chan struct{} // has an element while a decision or its release is in flight
	held      lease.ID      // the ID of the last grant that was believed, guarded by busy
	heldUntil time.Time     // when it has ended for certain, guarded by busy
	newest    lease.Token   // with which this member has survived, or that Check has read, guarded by busy
}

// New returns a Decider for the member self. New sends no request, so call [Decider.Check] when the program
// starts. All members of the cluster pass the same name of a lease that nothing else uses. If an argument or
// an option is out of range, New returns a [*lease.FieldError].
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
