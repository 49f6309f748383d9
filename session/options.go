package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timing"
)

// Options configure a [Session]. A nil *Options and the zero value of each field mean the
// defaults. New refuses what is out of range, and a combination that leaves no time to try a
// failed renewal again: RenewInterval + 2 RequestTimeout + RetryDelay + StopWindow must fit into the
// time for which one grant is believed.
type Options struct {
	// Owner labels the lease for people: which process, which host. Default: unique to the
	// Session, 16 random hexadecimal digits. It proves nothing; two Sessions of the same Owner exclude each other, unless
	// TakeOver is set.
	Owner string

	// TakeOver asserts that any earlier holder of the same Owner is dead, as Akka's owner
	// that crashed and came back. Acquire then takes a lease that is leased to Owner, and the
	// earlier holder loses it with the Reason [lease.ErrTakenOver]. It takes nothing that is
	// breaking, and needs an Owner, and an authority that discloses IDs: otherwise Acquire fails
	// with errors.ErrUnsupported. It turns Watch on, so that an earlier holder that is alive after
	// all, and has the same Options, notices soon.
	TakeOver bool

	// Duration to ask for, or lease.Infinite. Default: 30 s. No other holder gets an infinite lease whose
	// holder has crashed until it is broken, and the same is true of one that a request acquires
	// which reaches the authority after Close. Prefer a finite one: it ends by itself.
	Duration time.Duration

	// RenewInterval is the time from one renewal to the next, shortened at random by up to a tenth.
	// The first renewal comes after a tenth of it at least, at random, so that leases that were
	// taken together are not renewed together. For an infinite lease it is how often the Session asks
	// whether the lease was broken.
	// Default: Duration/3; 10 s for an infinite lease.
	RenewInterval time.Duration

	// RequestTimeout bounds one request to the authority. Default: Duration/6, at most 5 s.
	RequestTimeout time.Duration

	// RetryDelay is the time from a failed renewal to the next, shortened at random by up to half.
	// Default: RequestTimeout/2.
	RetryDelay time.Duration

	// StopWindow is how long before U the contexts of [Session.WhileHeld], and with them that of
	// [Run], end: the time that work has for stopping before another holder can begin. CheckAlive
	// stays true until U. Default: the least of Duration/6, 5 s, and what RenewInterval,
	// RequestTimeout and RetryDelay leave of the time for which one grant is believed; 5 s for an
	// infinite lease, where it counts before the end of a break. Negative: none.
	StopWindow time.Duration

	// Watch makes the Session watch the record while it holds the lease, where the authority is
	// a [lease.Watcher], and ask at once when the record shows a break or another holder: it
	// learns of that once a look at the record and a renewal are answered (two, if one is under
	// way), and not at the next renewal. It costs a goroutine and a watch for as long as the lease
	// is held, and a look at the record for every signal; in some stores each renewal gives one.
	// A signal that comes soon after a look that showed nothing new is followed a tenth of a
	// RenewInterval later at most.
	// Default: off, but on with TakeOver.
	Watch bool

	// MaxClockDrift bounds e: the clocks of the authority and of this machine run at rates from
	// 1-e to 1+e. Default: 0.001. Must be below 1.
	MaxClockDrift float64

	// Margin is how long before the authority could end the lease CheckAlive turns false, besides
	// what MaxClockDrift takes. Default: 1 ms.
	Margin time.Duration

	// MaxClockJump is how far the wall clock may get ahead of the monotonic clock within one belief
	// before the Session concludes that the machine slept, and counts the wall clock's time.
	// Setting the wall clock forward by more than that ends the belief too. Default: 1 s.
	MaxClockJump time.Duration

	// Clock is where time comes from. Default: package time.
	Clock lease.Clock

	// Rand is where IDs and jitter come from; a Session reads it under its own mutex, so it
	// must not be shared between Sessions unless it is safe for that. Two sources that yield the
	// same bytes make equal IDs, and holders with equal IDs do not exclude each other.
	// Default: crypto/rand.
	Rand io.Reader

	// Logger gets acquired and released at Debug; the beginning of a break at Warn, and failed
	// requests: the first of a series, and then the 2nd, 4th, 8th and so on; losses and panics of
	// handlers at Error. That another holder has the lease is not a failure. A Logger that takes
	// long, or never returns, delays nothing; the records that it cannot keep up with are counted
	// and dropped. Default: slog.Default(), as it is at each record; slog.DiscardHandler silences it.
	Logger *slog.Logger

	// Trace is called at the events of the Session. Default: none.
	Trace *Trace
}

const (
	defaultDuration       = 30 * time.Second
	defaultRenewInterval  = 10 * time.Second // of an infinite lease
	defaultRequestTimeout = 5 * time.Second  // at most
	defaultMaxClockDrift  = 0.001
	defaultMargin         = time.Millisecond
	defaultMaxClockJump   = time.Second
	defaultStopWindow     = 5 * time.Second // at most

	longest = lease.Infinite / 8 // of any but Duration, so that multiples can be written
)

// Complete returns a copy of o, which may be nil, with every default in its place but that of
// Owner, which each Session makes for itself. It refuses what New refuses: every broken rule
// is a [*lease.FieldError] in the error's tree, and names a field that was given, not one
// that follows from it.
func (o *Options) Complete() (*Options, error) {
	var given Options
	if o != nil {
		given = *o
	}
	c := given
	byDefault(&c.Duration, defaultDuration)
	if c.Duration == lease.Infinite {
		byDefault(&c.RenewInterval, defaultRenewInterval)
	}
	byDefault(&c.RenewInterval, part(c.Duration, 3))
	byDefault(&c.RequestTimeout, min(part(c.Duration, 6), defaultRequestTimeout))
	byDefault(&c.RetryDelay, part(c.RequestTimeout, 2))
	byDefault(&c.MaxClockDrift, defaultMaxClockDrift)
	byDefault(&c.Margin, defaultMargin)
	byDefault(&c.MaxClockJump, defaultMaxClockJump)
	c.Watch = c.Watch || c.TakeOver
	if c.StopWindow == 0 {
		c.StopWindow = max(0, min(part(c.Duration, 6), defaultStopWindow, c.room()))
	}
	if c.Clock == nil {
		c.Clock = timing.System{}
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	err := c.inRange()
	if err == nil {
		err = c.leaveTime(&given)
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

func byDefault[T int64 | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// part is the nth part of d, or what is nearest to it and in range, so that nothing but d
// itself is refused for a bad d.
func part(d time.Duration, n time.Duration) time.Duration { return max(1, min(d/n, longest)) }

func badOption(field string, value any, bound string) error {
	return &lease.FieldError{Field: "Options." + field, Value: fmt.Sprint(value), Bound: bound, Code: lease.ErrOption}
}

// inRange checks each field by itself.
func (o *Options) inRange() error {
	var errs []error
	refuse := func(field string, value any, bound string) { errs = append(errs, badOption(field, value, bound)) }
	if o.Owner == "" && o.TakeOver {
		refuse("Owner", `""`, "must be given with TakeOver")
	}
	if o.Owner != "" {
		errs = append(errs, lease.CheckOwner(o.Owner))
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Duration", o.Duration}, {"RenewInterval", o.RenewInterval}, {"RequestTimeout", o.RequestTimeout},
		{"RetryDelay", o.RetryDelay}, {"Margin", o.Margin}, {"MaxClockJump", o.MaxClockJump}, {"StopWindow", max(1, o.StopWindow)},
	} {
		switch {
		case f.value <= 0:
			refuse(f.name, f.value, "must be positive")
		case f.value > longest && f.name != "Duration":
			refuse(f.name, f.value, fmt.Sprintf("must be at most %v", longest))
		}
	}
	if !(o.MaxClockDrift >= 0 && o.MaxClockDrift < 1) { // also for a NaN
		refuse("MaxClockDrift", o.MaxClockDrift, "must be from 0 to below 1")
	}
	return errors.Join(errs...)
}

// leaveTime checks that what is believed of one grant has room for a renewal that fails and
// another. If not it blames the first field given that could make room alone, with its
// bound, or if none could, the first given.
func (o *Options) leaveTime(given *Options) error {
	window := max(0, given.StopWindow)
	room := o.room() - window
	if room >= 0 {
		return nil
	}
	why := fmt.Sprintf("so that a failed renewal can be tried again: RenewInterval %v, twice RequestTimeout %v, RetryDelay %v and StopWindow %v must fit into what MaxClockDrift %v and Margin %v leave of Duration %v",
		o.RenewInterval, o.RequestTimeout, o.RetryDelay, window, o.MaxClockDrift, o.Margin, o.Duration)
	timeout := (room + 2*o.RequestTimeout) / 2
	if given.RetryDelay == 0 {
		timeout = (2*(room+2*o.RequestTimeout+o.RetryDelay) + 1) / 5 // a RetryDelay of half of that included
	}
	var blame error
	for _, f := range []struct {
		name  string
		given bool
		value any
		most  time.Duration // with which it would fit; not positive: it never would
		must  string
	}{
		{"Duration", given.Duration != 0, o.Duration, 0, "longer"},
		{"MaxClockDrift", given.MaxClockDrift != 0, o.MaxClockDrift, 0, "lower"},
		{"RenewInterval", given.RenewInterval != 0, o.RenewInterval, o.RenewInterval + room, "shorter"},
		{"RequestTimeout", given.RequestTimeout != 0, o.RequestTimeout, timeout, "shorter"},
		{"RetryDelay", given.RetryDelay != 0, o.RetryDelay, o.RetryDelay + room, "shorter"},
		{"Margin", given.Margin != 0, o.Margin, o.Margin + room, "shorter"},
		{"StopWindow", given.StopWindow > 0, o.StopWindow, o.StopWindow + room, "shorter"},
	} {
		switch {
		case !f.given:
		case f.most > 0:
			return badOption(f.name, f.value, fmt.Sprintf("must be at most %v, %s", f.most, why))
		case blame == nil:
			blame = badOption(f.name, f.value, "must be "+f.must+", "+why)
		}
	}
	return blame
}

// room is what one grant leaves for the StopWindow after a renewal that failed twice.
func (o *Options) room() time.Duration {
	return o.budget(o.Duration) - o.RenewInterval - 2*o.RequestTimeout - o.RetryDelay
}

// window is the StopWindow, and 0 for none.
func (o *Options) window() time.Duration { return max(0, o.StopWindow) }
