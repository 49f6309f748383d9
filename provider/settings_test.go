package provider_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/provider"
	"pgregory.net/rapid"
)

const s = time.Second

// TimeoutSettingsSpec: the default of RenewInterval is a part of the Duration, and can be overridden. In
// Akka, it is a tenth of the duration, but at least 5 s. In this package, it is a third, so that two
// renewals in a row can fail, and RequestTimeout is at most 5 s.
func TestSettingsDefaults(t *testing.T) {
	for _, c := range []struct {
		name      string
		set, want provider.Settings
	}{
		{"none", provider.Settings{}, provider.Settings{Duration: 30 * s, RenewInterval: 10 * s, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}},
		{"duration", provider.Settings{Duration: 12 * s}, provider.Settings{Duration: 12 * s, RenewInterval: 4 * s, RequestTimeout: 2 * s, RetryDelay: s}},
		{"long duration", provider.Settings{Duration: 120 * s}, provider.Settings{Duration: 120 * s, RenewInterval: 40 * s, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}},
		{"interval", provider.Settings{Duration: 100 * s, RenewInterval: s}, provider.Settings{Duration: 100 * s, RenewInterval: s, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}},
		{"timeout", provider.Settings{RequestTimeout: s}, provider.Settings{Duration: 30 * s, RenewInterval: 10 * s, RequestTimeout: s, RetryDelay: s / 2}},
		{"infinite", provider.Settings{Duration: lease.Infinite}, provider.Settings{Duration: lease.Infinite, RenewInterval: 10 * s, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}},
		{"infinite, interval", provider.Settings{Duration: lease.Infinite, RenewInterval: time.Hour}, provider.Settings{Duration: lease.Infinite, RenewInterval: time.Hour, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}},
	} {
		r, err := provider.New(&c.set)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := r.Settings(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The error for bad Settings names a field that the caller has set, its value and its bound. SPEC P2.
func TestSettingsRefused(t *testing.T) {
	const believed = 30*s - 59_940_060 - time.Millisecond // how long a Session relies on a grant of the default duration
	for _, c := range []struct {
		name  string
		set   provider.Settings
		field string // the field and the value in the error; "" if the Settings are valid
	}{
		{"negative duration", provider.Settings{Duration: -1}, "Duration = -1ns: must not be negative"},
		{"negative interval", provider.Settings{RenewInterval: -1}, "RenewInterval = -1ns: must not be negative"},
		{"negative timeout", provider.Settings{RequestTimeout: -1}, "RequestTimeout = -1ns: must not be negative"},
		{"negative retry", provider.Settings{RetryDelay: -1}, "RetryDelay = -1ns: must not be negative"},
		{"negative interval of an infinite lease", provider.Settings{Duration: lease.Infinite, RenewInterval: -1}, "RenewInterval = -1ns: must not be negative"},
		{"a duration too short to divide", provider.Settings{Duration: 1}, "Duration = 1ns: must be at least 1ms"},
		{"a duration too short", provider.Settings{Duration: 11}, "Duration = 11ns: must be at least 1ms"},
		{"interval of half the duration", provider.Settings{Duration: 60 * s, RenewInterval: 30 * s}, "RenewInterval = 30s: must be below half of Duration, 1m0s"}, // TimeoutSettingsSpec
		{"interval of just less", provider.Settings{Duration: 60 * s, RenewInterval: 30*s - 1}, ""},
		{"interval of more than can be kept", provider.Settings{RenewInterval: believed - 15*s + 1}, "RenewInterval = 14.939059941s: must be at most 14.93905994s"},
		{"interval of more than can be", provider.Settings{RenewInterval: math.MaxInt64, RequestTimeout: s}, "RenewInterval = infinite: must be finite"},
		{"no time for two requests", provider.Settings{RequestTimeout: 8 * s}, "RequestTimeout = 8s: must be at most 6.97"},
		{"just no time to retry", provider.Settings{RequestTimeout: 4 * s, RetryDelay: believed - 20500*time.Millisecond + 1}, "RequestTimeout = 4s: must be at most 3.999999999s"},
		{"just time to retry", provider.Settings{RequestTimeout: 4 * s, RetryDelay: believed - 20500*time.Millisecond}, ""},
		{"no time for the default stop window", provider.Settings{Duration: 15 * s, RenewInterval: 7 * s, RequestTimeout: 3 * s, RetryDelay: s}, "RenewInterval = 7s: must be at most 6.719"},
		{"a shorter stop window", provider.Settings{Duration: 15 * s, RenewInterval: 7 * s, RequestTimeout: 3 * s, RetryDelay: s, StopWindow: s / 2}, ""},
		{"no stop window", provider.Settings{Duration: 15 * s, RenewInterval: 7 * s, RequestTimeout: 3 * s, RetryDelay: s, StopWindow: -1}, ""},
		{"a stop window without a unit", provider.Settings{StopWindow: 5}, "StopWindow = 5ns: must be at least 1ms"},
		{"an infinite stop window", provider.Settings{StopWindow: lease.Infinite}, "StopWindow = infinite: must be finite"},
		{"a stop window of all", provider.Settings{StopWindow: 20 * s}, "StopWindow = 20s: must be at most 7.43"},
		{"no time to retry", provider.Settings{RetryDelay: 10 * s}, "RetryDelay = 10s: must be at most 7.43"},
	} {
		r, err := provider.New(&c.set)
		if (c.set.Validate() == nil) != (err == nil) || (r == nil) != (err != nil) {
			t.Errorf("%s: New gives %v, %v, and Validate %v", c.name, r, err, c.set.Validate())
		}
		var field *lease.FieldError
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (!errors.As(err, &field) || field.Code != lease.ErrOption || !strings.HasPrefix(err.Error(), "Settings."+c.field)):
			t.Errorf("%s: %v, want a FieldError that begins with %s", c.name, err, c.field)
		}
	}
}

// Validate reports every broken rule, not only the first.
func TestValidateReportsEveryField(t *testing.T) {
	err := provider.Settings{Duration: -1, RenewInterval: -2, RequestTimeout: -3, RetryDelay: -4}.Validate()
	const want = `Settings.Duration = -1ns: must not be negative
Settings.RenewInterval = -2ns: must not be negative
Settings.RequestTimeout = -3ns: must not be negative
Settings.RetryDelay = -4ns: must not be negative`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// session.New accepts all Settings that New accepts, even at the limits, to the nanosecond.
func TestSessionsAcceptTheSettings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		some := func(label string) time.Duration {
			return time.Duration(rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(1, int64(20*s))).Draw(rt, label))
		}
		set := provider.Settings{Duration: some("duration"), RenewInterval: some("interval"), RequestTimeout: some("timeout"), RetryDelay: some("retry"), StopWindow: some("window") - s}
		r, err := provider.New(&set)
		if err != nil {
			return
		}
		register(t, r, "memory", provider.FromAuthority(lease.NewAuthority(memory.New(nil)), nil))
		if _, err := r.Lease("memory", "name", "owner"); err != nil {
			rt.Errorf("%+v: %v", r.Settings(), err)
		}
	})
}
