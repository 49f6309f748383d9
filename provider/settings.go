package provider

import (
	"errors"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Settings are the times of the leases that a [Registry] makes. Every zero field stands for
// the default of the field of that name in [session.Options]; a [Provider] is given Settings in
// which every default is in its place. A RenewInterval must be below half of a finite Duration, so
// that after a renewal which failed there is time for another, whatever the Provider is.
type Settings struct {
	Duration       time.Duration // of a grant, or lease.Infinite
	RenewInterval  time.Duration // from one renewal to the next
	RequestTimeout time.Duration // of one operation
	RetryDelay     time.Duration // from a failed renewal to the next
}

// Validate returns nil if a session takes the Settings, as far as its other options have their
// defaults: see [session.Options]. Otherwise every broken rule is a [*lease.FieldError] with
// the code [lease.ErrOption] in the error returned, which names a field that was given.
func (s Settings) Validate() error {
	_, err := s.complete()
	return err
}

// complete returns s with every default in its place.
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

// rename makes an error about session.Options, which nobody else has seen, one about Settings.
func rename(err error) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			rename(err)
		}
	} else if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
		bad.Field = strings.Replace(bad.Field, "Options.", "Settings.", 1)
	}
}
