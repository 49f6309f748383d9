package provider

import (
	"errors"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Settings are the times that the leases of a [Registry] use. A zero field means the default of the field
// with the same name in session.Options. A Registry replaces zero fields, except StopWindow, before it passes
// the Settings to a [Provider].
//
// Settings can be read from a configuration in JSON or YAML, such as
//
//	{"duration": "15s", "renewInterval": "5s"}
//
// The key of a field is its name with a small first letter. An error about a field contains its Go name, such
// as Settings.RenewInterval. With the type [Duration], Settings can also be read from flags and other
// formats.
type Settings struct {
	// Duration is the time after which a lease expires if it is not renewed. It is positive or lease.Infinite.
	Duration time.Duration

	// RenewInterval is the time from one renewal to the next. It must be less than half of a finite Duration, so
	// that a renewal that has failed can be tried again in time.
	RenewInterval time.Duration

	// RequestTimeout is the longest time that one request to the authority may take.
	RequestTimeout time.Duration

	// RetryDelay is the time between a failed renewal and the next attempt.
	RetryDelay time.Duration

	// StopWindow is how long the work may take to stop before the lease ends. A negative StopWindow means that
	// there is no stop window. A Registry does not replace a zero StopWindow, because its default depends on all
	// other session options.
	StopWindow time.Duration
}

// Validate applies the checks of session.New to the Settings, with defaults for all other options of the
// Session. It also checks that RenewInterval is less than half of a finite Duration. The error is a
// [*lease.FieldError] with the code [lease.ErrOption], or joins several such errors. Each of them names a
// field that is not zero.
func (s Settings) Validate() error {
	_, err := s.withDefaults()
	return err
}

// withDefaults returns a copy of s in which every zero field except StopWindow has its default.
func (s Settings) withDefaults() (Settings, error) {
	o, err := (&session.Options{Duration: s.Duration, RenewInterval: s.RenewInterval, RequestTimeout: s.RequestTimeout, RetryDelay: s.RetryDelay, StopWindow: s.StopWindow}).Complete()
	if err != nil {
		renameFields(err)
		return s, err
	}
	if o.Duration != lease.Infinite && o.RenewInterval >= o.Duration-o.RenewInterval {
		return s, &lease.FieldError{Field: "Settings.RenewInterval", Value: o.RenewInterval.String(),
			Bound: "must be below half of Duration, " + o.Duration.String(), Code: lease.ErrOption}
	}
	return Settings{o.Duration, o.RenewInterval, o.RequestTimeout, o.RetryDelay, s.StopWindow}, nil
}

// renameFields makes an error name the fields of Settings, such as Settings.Duration, in place of the fields
// of session.Options. It changes err itself, so no other goroutine may use err.
func renameFields(err error) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			renameFields(err)
		}
	} else if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
		bad.Field = strings.Replace(bad.Field, "Options.", "Settings.", 1)
	}
}
