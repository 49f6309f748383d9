package provider_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/provider"
	"github.com/fencedlease/lease/session"
)

const s = time.Second

// TimeoutSettingsSpec: the interval defaults to a part of the duration, with a bound, and
// can be overridden. (There a tenth, and at least 5 s; here a third, so that two renewals
// in a row can fail. The bound is on the time-out of a request instead, at most 5 s.)
func TestSettingsDefaults(t *testing.T) {
	for _, c := range []struct {
		name      string
		set, want provider.Settings
	}{
		{"none", provider.Settings{}, provider.Settings{Duration: 30 * s, Interval: 10 * s, Timeout: 5 * s, Retry: 2500 * time.Millisecond}},
		{"duration", provider.Settings{Duration: 12 * s}, provider.Settings{Duration: 12 * s, Interval: 4 * s, Timeout: 2 * s, Retry: s}},
		{"long duration", provider.Settings{Duration: 120 * s}, provider.Settings{Duration: 120 * s, Interval: 40 * s, Timeout: 5 * s, Retry: 2500 * time.Millisecond}},
		{"interval", provider.Settings{Duration: 100 * s, Interval: s}, provider.Settings{Duration: 100 * s, Interval: s, Timeout: 5 * s, Retry: 2500 * time.Millisecond}},
		{"timeout", provider.Settings{Timeout: s}, provider.Settings{Duration: 30 * s, Interval: 10 * s, Timeout: s, Retry: s / 2}},
		{"infinite", provider.Settings{Duration: lease.Infinite}, provider.Settings{Duration: lease.Infinite, Interval: 10 * s, Timeout: 5 * s, Retry: 2500 * time.Millisecond}},
		{"infinite, interval", provider.Settings{Duration: lease.Infinite, Interval: time.Hour}, provider.Settings{Duration: lease.Infinite, Interval: time.Hour, Timeout: 5 * s, Retry: 2500 * time.Millisecond}},
	} {
		r, err := provider.New(&c.set)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := r.Settings(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// SPEC P2.
func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   provider.Settings
		field string // "": valid
	}{
		{"negative duration", provider.Settings{Duration: -1}, "Settings.Duration"},
		{"negative interval", provider.Settings{Interval: -1}, "Settings.Interval"},
		{"negative timeout", provider.Settings{Timeout: -1}, "Settings.Timeout"},
		{"negative retry", provider.Settings{Retry: -1}, "Settings.Retry"},
		{"negative interval of an infinite lease", provider.Settings{Duration: lease.Infinite, Interval: -1}, "Settings.Interval"},
		{"a duration too short to divide", provider.Settings{Duration: 2}, "Settings.Interval"},
		{"interval of half the duration", provider.Settings{Interval: 15 * s, Timeout: s}, "Settings.Interval"}, // TimeoutSettingsSpec
		{"interval of less than half", provider.Settings{Interval: 15*s - 1, Timeout: s}, ""},
		{"interval of more than the duration", provider.Settings{Interval: math.MaxInt64, Timeout: s}, "Settings.Interval"},
		{"no time for two requests", provider.Settings{Timeout: 8 * s}, "Settings.Timeout"},
		{"just no time to retry", provider.Settings{Timeout: 5 * s, Retry: 10 * s}, "Settings.Timeout"},
		{"just time to retry", provider.Settings{Timeout: 5 * s, Retry: 10*s - 1}, ""},
		{"sums that overflow", provider.Settings{Timeout: math.MaxInt64, Retry: math.MaxInt64}, "Settings.Timeout"},
	} {
		r, err := provider.New(&c.set)
		if (r.Settings().Valid() == nil) != (err == nil) {
			t.Errorf("%s: New and Valid disagree", c.name)
		}
		var field *lease.FieldError
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (!errors.As(err, &field) || field.Field != c.field || field.Code != lease.ErrOption || field.Value == "" || field.Bound == ""):
			t.Errorf("%s: %v, want a FieldError of %s", c.name, err, c.field)
		}
	}
}

// Every broken rule is told, not only the first.
func TestSettingsTellEveryBrokenField(t *testing.T) {
	err := provider.Settings{Duration: -1, Interval: -2, Timeout: -3, Retry: -4}.Valid()
	const want = `Settings.Duration = -1ns: must be positive
Settings.Interval = -2ns: must be positive
Settings.Timeout = -3ns: must be positive
Settings.Retry = -4ns: must be positive`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// What New accepts a session accepts, away from the very bounds.
func TestSessionsAcceptTheSettings(t *testing.T) {
	for _, set := range []provider.Settings{
		{}, {Duration: 15 * s}, {Duration: 60 * s}, {Duration: time.Hour}, {Duration: lease.Infinite}, {Duration: s},
		{Interval: 14 * s}, {Timeout: 7 * s}, {Timeout: 5 * s, Retry: 9 * s},
	} {
		r, err := provider.New(&set)
		if err != nil {
			t.Fatal(err)
		}
		register(t, r, "memory", provider.FromAuthority(lease.NewAuthority(memory.New(nil)), nil))
		if _, err := r.Lease("memory", "name", "owner"); err != nil {
			t.Errorf("%+v: %v", r.Settings(), err)
		}
	}
}

// The defaults are those of a session.
func TestDefaultsAreThoseOfASession(t *testing.T) {
	for _, duration := range []time.Duration{0, 60 * s, lease.Infinite} {
		var asked [2]lease.Request
		for i := range asked {
			authority := recorder{lease.NewAuthority(memory.New(nil)), &asked[i]}
			var l lease.Lease
			var err error
			if i == 0 {
				l, err = session.New(authority, "name", &session.Options{Owner: "owner", Duration: duration})
			} else {
				r, errNew := provider.New(&provider.Settings{Duration: duration})
				if errNew != nil {
					t.Fatal(errNew)
				}
				register(t, r, "kind", provider.FromAuthority(authority, nil))
				l, err = r.Lease("kind", "name", "owner")
			}
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := l.Acquire(t.Context()); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if err := l.(provider.Closer).Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked[i].Proposed = lease.ID{}
		}
		if asked[0] != asked[1] || asked[0].Duration == 0 || asked[0].Owner != "owner" {
			t.Errorf("a session asked for %+v, one of the provider for %+v", asked[0], asked[1])
		}
	}
}
