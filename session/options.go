package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/holder"
)

// Options configure a [Session]. A nil *Options means the defaults. If a field is zero, its default is used.
//
// New returns an error if a field is out of range. A duration below 1 ms usually means that the caller has
// forgotten the unit, and has written 30 instead of 30*time.Second, for example. Therefore New accepts a
// duration below 1 ms only in Margin and MaxClockJump. New also returns an error if a failed renewal could
// not be retried before the work must stop. This condition must hold:
//
//	RenewInterval + 2 RequestTimeout + RetryDelay + StopWindow <= U - sent
//
// The right side of this condition, U - sent, is how long the Session relies on a grant. The package
// documentation defines U and sent.
type Options struct {
	// Owner is a label for people to read, for example the name of a process and of its host. The Owner
	// appears in the log records, and in the record of the lease that [lease.Inspect] returns. An Owner
	// proves nothing: two Sessions with the same Owner exclude each other, unless TakeOver is set. Default:
	// the host name, the process ID and 16 random digits, joined by "_", so that every Session has a
	// different Owner.
	Owner string

	// TakeOver lets Acquire take the lease from an earlier holder with the same Owner. That holder loses the
	// lease with the Reason [lease.ErrTakenOver]. Set TakeOver only if every earlier holder with this Owner
	// is dead, for example because the process has crashed and restarted. TakeOver also turns Watch on.
	// Thanks to the watch, an earlier holder with TakeOver that is still alive soon learns that it has lost
	// the lease.
	//
	// TakeOver needs an Owner. A lease that is breaking is not taken over. If the authority does not report
	// the ID of the earlier holder, Acquire fails with errors.ErrUnsupported.
	TakeOver bool

	// Duration is the duration to request, or lease.Infinite. Default: 30 s. Prefer a finite duration: if the
	// holder of an infinite lease crashes, or if a delayed request acquires an infinite lease after Close,
	// the lease stays locked until somebody breaks it.
	Duration time.Duration

	// RenewInterval is the time between two renewals. After each grant, the Session relies on the lease until
	// a time that the package documentation calls U. The Session renews the lease at the latest when half of
	// the time until U has passed. An infinite lease is renewed, too, because the answer shows whether the
	// lease was broken. Default: Duration/3, or 10 s for an infinite lease.
	//
	// The Session shortens each interval at random by up to a tenth, and the first one after an Acquire by up
	// to nine tenths. So leases that were acquired together are renewed at different times.
	RenewInterval time.Duration

	// RequestTimeout is the time limit of one request to the authority. The error of a request that timed out
	// does not match context.DeadlineExceeded, so that a caller can tell it from the end of the caller's own
	// context. If the server of a store is overloaded, a renewal can wait in the process before it is sent.
	// With the default Clock, the time limit does not include this wait. The wait lasts at most three times
	// the RequestTimeout, and leaves enough time for the answer to arrive before the stop window. Default:
	// Duration/6, but at most 5 s.
	RequestTimeout time.Duration

	// RetryDelay is the time from a failed renewal to its retry, shortened at random by up to half.
	// Default: RequestTimeout/2.
	RetryDelay time.Duration

	// StopWindow is how long the work may take to stop after its context has ended. The contexts of
	// [Session.WhileHeld] and [Run] end one StopWindow before CheckAlive turns false. If the work stops
	// within that time, no other holder can have the lease while the work is running. The section Conditions
	// of the package documentation lists the exceptions. A negative value means that there is no stop window.
	//
	// Default: Duration/6, but at most 5 s. For an infinite lease, which needs a stop window when it is
	// broken, the default is 5 s. If the other options leave less time than the default, the StopWindow is
	// the time that they leave, but at least half of the default. With a Duration of 30 s, for example, the
	// default is 5 s, or 3 s if the other options leave only 3 s. If the other options leave less than half
	// of the default, New returns an error.
	StopWindow time.Duration

	// Watch makes the Session watch the record of the lease while it holds the lease, if the authority is a
	// [lease.Watcher]. If the record no longer shows that the Session holds the lease, for example because
	// the lease was broken, the Session renews at once. The answer decides whether the lease is lost. Without
	// Watch, the Session learns of a break only at its next regular renewal.
	//
	// While the lease is held, Watch costs one goroutine, one watch of the record, and one read of the record
	// after each signal of the watch. Some stores signal every renewal. If the record has not changed since
	// the last read, the next read is delayed by up to a tenth of RenewInterval.
	//
	// Default: off, but on if TakeOver is set.
	Watch bool

	// MaxClockDrift is the largest relative error of a clock rate. For example, 0.001 allows the clock of the
	// authority and the clock of this machine to run at rates from 0.999 to 1.001. MaxClockDrift must be
	// below 1, and must not be negative. Default: 0.001.
	MaxClockDrift float64

	// Margin is an additional safety time. CheckAlive turns false at least one Margin before the
	// authority could end the lease, even if both clocks drift by MaxClockDrift. Default: 1 ms.
	Margin time.Duration

	// MaxClockJump is how far the wall clock may get ahead of the monotonic clock after the last granted
	// request. If the wall clock gets further ahead, the Session concludes that the machine was suspended,
	// and measures the time with the wall clock. Setting the wall clock forward by more than MaxClockJump
	// therefore makes CheckAlive turn false earlier than necessary. Default: 1 s.
	MaxClockJump time.Duration

	// Clock is the source of time. Default: package time. A Session waits for the Clock in goroutines of its
	// own, so a test that has set its Clock forward must wait for these goroutines. Most tests should leave
	// Clock nil and run in a bubble of testing/synctest, where synctest.Wait waits for the goroutines.
	Clock lease.Clock

	// Rand is the source of the IDs and of the jitter. A Session holds its mutex while it reads Rand, so Rand
	// must not call methods of the Session. Sessions may share a Rand if it is safe for concurrent use. Two
	// sources must not yield the same bytes, because holders with equal IDs do not exclude each other. A test
	// that needs the same random numbers in every run can set Rand to a rand.NewChaCha8 of math/rand/v2, with
	// a different seed for each Session. [Run] uses the Rand of its Session. Default: crypto/rand.
	Rand io.Reader

	// Logger receives the records that docs/operate.md lists, each with the name of the lease and the owner
	// of the Session. A slow Logger does not delay the Session, which drops and counts records that the
	// Logger cannot take in time. Before a record at Debug, however, the Session itself calls the method
	// Enabled of the Handler, which must not block. Default: slog.Default() at the time of each record. To
	// turn logging off, use slog.DiscardHandler.
	Logger *slog.Logger

	// Trace is a set of hooks for the events of the Session. Default: none.
	Trace *Trace
}

const (
	defaultDuration       = 30 * time.Second
	defaultRenewInterval  = 10 * time.Second // for an infinite lease
	defaultRequestTimeout = 5 * time.Second  // at most
	defaultMaxClockDrift  = 0.001
	defaultMargin         = time.Millisecond
	defaultMaxClockJump   = time.Second
	defaultStopWindow     = 5 * time.Second // at most

	// The constant shortest is the lower limit of the durations in Options and RunOptions, except Margin,
	// MaxClockJump and WakeJitter. A caller who passes less than a millisecond has nearly always forgotten
	// the unit. For example, the caller has written 30 instead of 30*time.Second. An interval of 30 ns would
	// make the Session send requests without a pause.
	shortest = time.Millisecond
	tooShort = "must be at least 1ms; did you forget the unit?"

	longest = lease.Infinite / 8 // the largest value of every field except Duration, so that multiples do not overflow
)

// Complete returns a copy of o, which may be nil, with the defaults filled in. The Owner stays empty, because
// New chooses a different one for each Session.
//
// If an option is invalid, Complete returns the same error as New. The error wraps one [*lease.FieldError]
// for each problem. Every FieldError names a field that the caller has set.
func (o *Options) Complete() (*Options, error) {
	var given Options
	if o != nil {
		given = *o
	}
	c := given.filled()
	err := c.inRange(&given)
	if err == nil {
		err = c.leaveTime(&given)
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

func (o *Options) filled() Options {
	c := *o
	byDefault(&c.Duration, defaultDuration)
	if c.Duration == lease.Infinite {
		byDefault(&c.RenewInterval, defaultRenewInterval)
	}
	byDefault(&c.RenewInterval, fraction(c.Duration, 3))
	byDefault(&c.RequestTimeout, min(fraction(c.Duration, 6), defaultRequestTimeout))
	byDefault(&c.RetryDelay, fraction(c.RequestTimeout, 2))
	byDefault(&c.MaxClockDrift, defaultMaxClockDrift)
	byDefault(&c.Margin, defaultMargin)
	byDefault(&c.MaxClockJump, defaultMaxClockJump)
	c.Watch = c.Watch || c.TakeOver
	if c.StopWindow == 0 {
		window := min(fraction(c.Duration, 6), defaultStopWindow)
		c.StopWindow = max(window/2, min(window, c.timeLeft()))
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return c
}

func byDefault[T int64 | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// The function fraction divides d by n, and limits the result to the range of a valid duration. Even if the
// caller has passed an invalid d, a default that is computed from d is valid. The caller therefore gets an
// error only for d, and not for the default as well.
func fraction(d time.Duration, n time.Duration) time.Duration {
	return max(shortest, min(d/n, longest))
}

func badOption(field string, value any, bound string) error {
	if d, ok := value.(time.Duration); ok {
		value = fields.Duration(d)
	}
	return &lease.FieldError{Field: "Options." + field, Value: fmt.Sprint(value), Bound: bound, Code: lease.ErrOption}
}

// inRange checks the range of each field. The default of StopWindow may be less than 1 ms.
func (o *Options) inRange(given *Options) error {
	var errs []error
	refuse := func(field string, value any, bound string) { errs = append(errs, badOption(field, value, bound)) }
	if o.Owner == "" && o.TakeOver {
		refuse("Owner", `""`, "must be given with TakeOver")
	}
	if bad := (*lease.FieldError)(nil); o.Owner != "" && errors.As(lease.CheckOwner(o.Owner), &bad) {
		bad.Field = "Options.Owner"
		errs = append(errs, bad)
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Duration", o.Duration}, {"RenewInterval", o.RenewInterval}, {"RequestTimeout", o.RequestTimeout},
		{"RetryDelay", o.RetryDelay}, {"Margin", o.Margin}, {"MaxClockJump", o.MaxClockJump}, {"StopWindow", max(1, o.StopWindow)},
	} {
		mayBeShort := f.name == "Margin" || f.name == "MaxClockJump" || f.name == "StopWindow" && given.StopWindow <= 0
		switch {
		case f.value <= 0:
			refuse(f.name, f.value, "must not be negative") // 0 means the default
		case f.value < shortest && !mayBeShort:
			refuse(f.name, f.value, tooShort)
		case f.value == lease.Infinite && f.name != "Duration":
			refuse(f.name, f.value, "must be finite")
		case f.value > longest && f.name != "Duration":
			refuse(f.name, f.value, fmt.Sprintf("must be at most %v", longest))
		}
	}
	if !(o.MaxClockDrift >= 0 && o.MaxClockDrift < 1) { // written so that NaN is refused
		refuse("MaxClockDrift", o.MaxClockDrift, "must be from 0 to below 1")
	}
	return errors.Join(errs...)
}

// leaveTime checks that a failed renewal can be retried before the stop window begins. If there is too little
// time for that, the error names one of the fields that the caller has set. If a smaller value of one such
// field would leave enough time, the error names this field and the largest value that is allowed. If no such
// field exists, the error names the first field that the caller has set. If a longer Duration would leave
// enough time, the error then also contains the shortest such Duration.
func (o *Options) leaveTime(given *Options) error {
	machine := o.machine()
	timeLeft := o.timeLeft() - machine.Window()
	if timeLeft >= 0 {
		return nil
	}
	window := machine.Window().String()
	if given.StopWindow == 0 {
		window += " (the shortest default; set StopWindow to allow less)"
	}
	grant := machine.Budget(o.Duration)
	why := fmt.Sprintf("so that a failed renewal can be tried again: RenewInterval %v, twice RequestTimeout %v, RetryDelay %v and StopWindow %s are together %v, but a grant gives %v (Duration %v less MaxClockDrift %v and Margin %v)",
		o.RenewInterval, o.RequestTimeout, o.RetryDelay, window, grant-timeLeft, max(0, grant), o.Duration, o.MaxClockDrift, o.Margin)
	timeout := (timeLeft + 2*o.RequestTimeout) / 2
	if requests := timeLeft + 2*o.RequestTimeout + o.RetryDelay; given.RetryDelay == 0 {
		timeout = (2*requests + 1) / 5 // the default RetryDelay is half of the timeout
		if timeout/2 < shortest {
			timeout = (requests - shortest) / 2
		}
	}
	var blame error
	for _, f := range []struct {
		name  string
		given bool
		value any
		most  time.Duration // largest value that leaves enough time
		least time.Duration // smallest valid value
		must  string
	}{
		{"Duration", given.Duration != 0, o.Duration, 0, shortest, "longer"},
		{"MaxClockDrift", given.MaxClockDrift != 0, o.MaxClockDrift, 0, 1, "lower"},
		{"RenewInterval", given.RenewInterval != 0, o.RenewInterval, o.RenewInterval + timeLeft, shortest, "shorter"},
		{"RequestTimeout", given.RequestTimeout != 0, o.RequestTimeout, timeout, shortest, "shorter"},
		{"RetryDelay", given.RetryDelay != 0, o.RetryDelay, o.RetryDelay + timeLeft, shortest, "shorter"},
		{"Margin", given.Margin != 0, o.Margin, o.Margin + timeLeft, 1, "shorter"},
		{"StopWindow", given.StopWindow > 0, o.StopWindow, o.StopWindow + timeLeft, shortest, "shorter"},
	} {
		switch {
		case !f.given:
		case f.most >= f.least:
			return badOption(f.name, f.value, fmt.Sprintf("must be at most %v, %s", f.most, why))
		case blame == nil:
			bound := "must be " + f.must
			switch least := given.leastDuration(o.Duration); {
			case least == 0:
			case f.name == "Duration":
				bound = fmt.Sprintf("must be at least %v", least)
			default:
				bound += fmt.Sprintf(", or Duration at least %v", least)
			}
			blame = badOption(f.name, f.value, bound+", "+why)
		}
	}
	return blame
}

// leastDuration returns the shortest Duration, in whole milliseconds, that leaves enough time for the other
// fields of o. The parameter below is a Duration that is too short. If no Duration is long enough,
// leastDuration returns 0.
func (o *Options) leastDuration(below time.Duration) time.Duration {
	enough := func(d time.Duration) bool {
		c := *o
		c.Duration = d
		c = c.filled()
		return c.timeLeft() >= max(0, c.StopWindow)
	}
	low, high := below/time.Millisecond, longest/time.Millisecond
	if low >= high || !enough(high*time.Millisecond) {
		return 0
	}
	for low+1 < high {
		if mid := low + (high-low)/2; enough(mid * time.Millisecond) {
			high = mid
		} else {
			low = mid
		}
	}
	return high * time.Millisecond
}

// If a renewal and its retry both time out, the Session has only some time left until U. The method
// o.timeLeft returns this time. The StopWindow must fit into this time.
func (o *Options) timeLeft() time.Duration {
	machine := o.machine()
	return machine.Budget(o.Duration) - o.RenewInterval - 2*o.RequestTimeout - o.RetryDelay
}

func (o *Options) machine() holder.Options {
	return holder.Options{Owner: o.Owner, TakeOver: o.TakeOver, Duration: o.Duration, RenewInterval: o.RenewInterval, RequestTimeout: o.RequestTimeout,
		RetryDelay: o.RetryDelay, StopWindow: o.StopWindow, MaxClockDrift: o.MaxClockDrift, Margin: o.Margin, MaxClockJump: o.MaxClockJump}
}
