package session

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// Options configure a [Session]. A nil *Options and the zero value of each field mean the
// defaults. New refuses what is out of range, and a combination that leaves no time to try a
// failed renewal again: Interval + 2 Timeout + Retry must fit into the time for which one
// grant is believed.
type Options struct {
	// Owner labels the lease for people: which process, which host. Default: unique to the
	// Session. It proves nothing; two Sessions of the same Owner exclude each other, unless
	// TakeOver is set.
	Owner string

	// TakeOver asserts that any earlier holder of the same Owner is dead, as Akka's owner
	// that crashed and came back. Acquire then takes a lease that is leased to Owner, and the
	// earlier holder loses it. It takes nothing that is breaking, and needs an Owner, and an
	// authority that discloses IDs: otherwise Acquire fails with errors.ErrUnsupported.
	TakeOver bool

	// Duration to ask for, or lease.Infinite. Default: 30 s.
	Duration time.Duration

	// Interval from one renewal to the next, shortened at random by up to a tenth. For an
	// infinite lease it is how often the Session asks whether the lease was broken.
	// Default: Duration/3; 10 s for an infinite lease.
	Interval time.Duration

	// Timeout of one request to the authority. Default: Duration/6, at most 5 s.
	Timeout time.Duration

	// Retry is the time from a failed renewal to the next, shortened at random by up to half.
	// Default: Timeout/2.
	Retry time.Duration

	// ClockRate bounds e: the clocks of the authority and of this machine run at rates from
	// 1-e to 1+e. Default: 0.001. Must be below 1.
	ClockRate float64

	// Margin is given away at the end of every belief. Default: 1 ms.
	Margin time.Duration

	// Pause is how far the wall clock may get ahead of the monotonic clock within one belief
	// before the Session concludes that the machine slept, and counts the wall clock's time.
	// Setting the wall clock forward by more than that ends the belief too. Default: 1 s.
	Pause time.Duration

	// Clock is where time comes from. Default: package time.
	Clock Clock

	// Rand is where IDs and jitter come from; a Session reads it under its own mutex, so it
	// must not be shared between Sessions unless it is safe for that. Two sources that yield the
	// same bytes make equal IDs, and holders with equal IDs do not exclude each other.
	// Default: crypto/rand.
	Rand io.Reader

	// Logger gets acquired and released at Debug, failed renewals and breaks at Warn, losses
	// and panics of handlers at Error. Default: none, but for panics: slog.Default().
	Logger *slog.Logger

	// Trace is called at the events of the Session. Default: none.
	Trace *Trace
}

// settings are Options with every default in its place.
type settings struct {
	Options
}

const (
	defaultDuration  = 30 * time.Second
	defaultInterval  = 10 * time.Second // of an infinite lease
	defaultTimeout   = 5 * time.Second
	defaultClockRate = 0.001
	defaultMargin    = time.Millisecond
	defaultPause     = time.Second

	longest = lease.Infinite / 8 // of any but Duration, so that multiples can be written
)

// complete fills in the defaults and checks the result.
func (o *Options) complete() (*settings, error) {
	var s settings
	if o != nil {
		s.Options = *o
	}
	infinite := s.Duration == lease.Infinite
	byDefault(&s.Duration, defaultDuration)
	if infinite {
		byDefault(&s.Interval, defaultInterval)
		byDefault(&s.Timeout, defaultTimeout)
	}
	byDefault(&s.Interval, part(s.Duration, 3))
	byDefault(&s.Timeout, min(part(s.Duration, 6), defaultTimeout))
	byDefault(&s.Retry, part(s.Timeout, 2))
	byDefault(&s.ClockRate, defaultClockRate)
	byDefault(&s.Margin, defaultMargin)
	byDefault(&s.Pause, defaultPause)
	if s.Clock == nil {
		s.Clock = system{}
	}
	return &s, s.check()
}

func byDefault[T int64 | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// part is the nth part of d, or what is nearest to it and in range, so that nothing but d
// itself is refused for a bad d.
func part(d time.Duration, n time.Duration) time.Duration { return max(1, min(d/n, longest)) }

func (s *settings) check() error {
	var errs []error
	refuse := func(field string, value any, bound string) {
		errs = append(errs, &lease.FieldError{Field: "Options." + field, Value: fmt.Sprint(value), Bound: bound, Code: lease.ErrOption})
	}
	if s.Owner == "" && s.TakeOver {
		refuse("Owner", `""`, "must be given with TakeOver")
	}
	if s.Owner != "" {
		if err := lease.CheckOwner(s.Owner); err != nil {
			errs = append(errs, err)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Duration", s.Duration}, {"Interval", s.Interval}, {"Timeout", s.Timeout},
		{"Retry", s.Retry}, {"Margin", s.Margin}, {"Pause", s.Pause},
	} {
		switch {
		case f.value <= 0:
			refuse(f.name, f.value, "must be positive")
		case f.value > longest && f.name != "Duration":
			refuse(f.name, f.value, fmt.Sprintf("must be at most %v", longest))
		}
	}
	if !(s.ClockRate >= 0 && s.ClockRate < 1) { // also for a NaN
		refuse("ClockRate", s.ClockRate, "must be from 0 to below 1")
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	believed := s.budget(s.Duration)
	switch room := believed - 2*s.Timeout - s.Retry; {
	case believed == lease.Infinite:
	case believed <= 0:
		refuse("Duration", s.Duration, fmt.Sprintf("must leave something after ClockRate %v and Margin %v", s.ClockRate, s.Margin))
	case room <= 0:
		refuse("Timeout", s.Timeout, fmt.Sprintf("must leave room for a renewal, Retry %v and another within the %v that are believed of Duration %v", s.Retry, believed, s.Duration))
	case s.Interval > room:
		refuse("Interval", s.Interval, fmt.Sprintf("must be at most %v, or a failed renewal cannot be tried again: of Duration %v, %v are believed, less twice Timeout %v and Retry %v", room, s.Duration, believed, s.Timeout, s.Retry))
	}
	return errors.Join(errs...)
}

// budget is how much of a duration that is certain at the authority may be believed here,
// counted from the sending: d(1-e)/(1+e) - margin, rounded down.
func (s *settings) budget(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return lease.Infinite
	}
	d = max(d, 0)        // an authority may answer nonsense
	const up = 1 + 1e-15 // float64 rounds to nearest
	drift := math.Ceil(float64(d) * (2 * s.ClockRate / (1 + s.ClockRate)) * up)
	return d - time.Duration(drift) - s.Margin
}

// elapsed is the time from one reading of the clock to another: the monotonic time, or the
// wall clock's if that is further ahead than a pause accounts for, since the monotonic
// clock stops while a machine sleeps.
func (s *settings) elapsed(from, to time.Time) time.Duration {
	mono, wall := to.Sub(from), to.Round(0).Sub(from.Round(0))
	if wall-mono > s.Pause {
		return wall
	}
	return mono
}

// missing refuses an argument that is nil.
func missing(argument string) error {
	return &lease.FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: lease.ErrOption}
}
