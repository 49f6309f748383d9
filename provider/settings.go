package provider

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Settings are the times of the leases that a [Registry] makes. Every zero field stands for
// the default it states; a [Provider] is given Settings in which every default is in its
// place.
type Settings struct {
	// Duration of a grant, or lease.Infinite. Default: 30 s.
	Duration time.Duration

	// Interval from one renewal to the next. It must be below half of the Duration, so that
	// one that fails leaves time for another. Default: Duration/3; 10 s if that is infinite.
	Interval time.Duration

	// Timeout of one operation. Default: Duration/6, at most 5 s.
	Timeout time.Duration

	// Retry is the time from a failed renewal to the next. Interval, two Timeouts and Retry
	// must be below the Duration. Default: Timeout/2.
	Retry time.Duration
}

const (
	defaultDuration = 30 * time.Second
	defaultInterval = 10 * time.Second // of an infinite lease
	defaultTimeout  = 5 * time.Second  // at most
)

// complete returns s with every default in its place.
func (s Settings) complete() Settings {
	byDefault := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	byDefault(&s.Duration, defaultDuration)
	if s.Duration == lease.Infinite {
		byDefault(&s.Interval, defaultInterval)
	}
	byDefault(&s.Interval, s.Duration/3)
	byDefault(&s.Timeout, min(s.Duration/6, defaultTimeout))
	byDefault(&s.Retry, s.Timeout/2)
	return s
}

// Valid returns nil if the Settings, with the defaults in their places, keep the rules
// stated with each field. Otherwise every broken rule is a [*lease.FieldError] with the
// code [lease.ErrOption] in the error returned.
func (s Settings) Valid() error {
	var errs []error
	refuse := func(field string, value time.Duration, bound string) {
		errs = append(errs, &lease.FieldError{Field: "Settings." + field, Value: value.String(), Bound: bound, Code: lease.ErrOption})
	}
	each := func(bad func(time.Duration) bool) {
		for _, f := range []struct {
			name  string
			value time.Duration
		}{{"Duration", s.Duration}, {"Interval", s.Interval}, {"Timeout", s.Timeout}, {"Retry", s.Retry}} {
			if bad(f.value) {
				refuse(f.name, f.value, "must be positive")
			}
		}
	}
	each(func(d time.Duration) bool { return d < 0 })
	if s = s.complete(); len(errs) == 0 { // a default follows from nothing that is refused
		each(func(d time.Duration) bool { return d == 0 })
	}
	if len(errs) > 0 || s.Duration == lease.Infinite {
		return errors.Join(errs...)
	}
	// The differences are of positive numbers, one after the other, so that nothing
	// overflows.
	left := s.Duration - s.Interval
	for _, d := range []time.Duration{s.Timeout, s.Timeout, s.Retry} {
		if left > 0 {
			left -= d
		}
	}
	switch {
	case s.Interval >= s.Duration-s.Interval:
		refuse("Interval", s.Interval, fmt.Sprintf("must be below half of Duration, %v", s.Duration))
	case left <= 0:
		refuse("Timeout", s.Timeout, fmt.Sprintf("twice, with Interval %v and Retry %v, must be below Duration, %v", s.Interval, s.Retry, s.Duration))
	}
	return errors.Join(errs...)
}
