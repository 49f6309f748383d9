package provider

import (
	"errors"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Settings are the times of the leases that a [Registry] makes. A zero field means the default of the
// field of the same name in [session.Options]. A [Provider] gets Settings without zero fields.
//
// Settings can be read from a configuration in JSON or YAML, such as
//
//	{"duration": "15s", "renewInterval": "5s"}
//
// and from flags and other formats through [Duration].
type Settings struct {
	// Duration is how long a grant lasts without a renewal. It is positive, or lease.Infinite.
	Duration time.Duration

	// RenewInterval is the time from one renewal to the next. It must be below half of a finite
	// Duration, so that there is time for a second renewal if one fails.
	RenewInterval time.Duration

	// RequestTimeout bounds one request to the authority.
	RequestTimeout time.Duration

	// RetryDelay is the time from a failed renewal to the next attempt.
	RetryDelay time.Duration
}

// Validate returns nil if a session whose other options have their defaults accepts the Settings.
// Otherwise its error joins a [*lease.FieldError] with the code [lease.ErrOption] for every rule of
// [session.Options] that is broken. Each names a field that is not zero.
func (s Settings) Validate() error {
	_, err := s.complete()
	return err
}

// complete returns s with the default in the place of every zero field.
func (s Settings) complete() (Settings, error) {
	o, err := (&session.Options{Duration: s.Duration, RenewInterval: s.RenewInterval, RequestTimeout: s.RequestTimeout, RetryDelay: s.RetryDelay}).Complete()
	if err != nil {
		rename(err)
		return s, err
	}
	if o.Duration != lease.Infinite && o.RenewInterval >= o.Duration-o.RenewInterval {
		return s, &lease.FieldError{Field: "Settings.RenewInterval", Value: o.RenewInterval.String(),
			Bound: "must be below half of Duration, " + o.Duration.String(), Code: lease.ErrOption}
	}
	return Settings{o.Duration, o.RenewInterval, o.RequestTimeout, o.RetryDelay}, nil
}

// rename changes the field in an error about session.Options to the one of Settings. The error is
// new, so that nothing else refers to it.
func rename(err error) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			rename(err)
		}
	} else if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
		bad.Field = strings.Replace(bad.Field, "Options.", "Settings.", 1)
	}
}
