package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// The usual default of StopWindow is a sixth of the Duration, but at most 5 s. If the other options
// leave less time, the default is the time that they leave, but at least half of the usual default.
// SPEC H22.
func TestStopWindowByDefault(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		o    *session.Options
		want time.Duration
	}{
		{nil, 5 * s},
		{&session.Options{Duration: 120 * s}, 5 * s},
		{&session.Options{Duration: 12 * s}, 2 * s},
		{&session.Options{Duration: 300 * time.Millisecond}, 50 * time.Millisecond},
		{&session.Options{Duration: lease.Infinite}, 5 * s},
		{&session.Options{RenewInterval: 14 * s}, 30*s - 60*time.Millisecond - s/1000 - 26500*time.Millisecond}, // the time that the other options leave
		{&session.Options{RenewInterval: s}, 5 * s},
		{&session.Options{StopWindow: 3 * s}, 3 * s},
		{&session.Options{StopWindow: -1}, -1},
	} {
		o, err := c.o.Complete()
		if err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		if o.StopWindow < c.want || o.StopWindow > c.want+time.Millisecond { // the want is computed with the exact drift
			t.Errorf("%+v: %v, want %v", c.o, o.StopWindow, c.want)
		}
		again, err := o.Complete()
		if err != nil || again.StopWindow != o.StopWindow {
			t.Errorf("%+v: completed twice it is %v, %v", c.o, again, err)
		}
	}
	for _, o := range []*session.Options{ // the options leave exactly the least time, or a nanosecond more
		{Duration: 30 * s, MaxClockDrift: 1e-12, Margin: s, RenewInterval: 10 * s, RequestTimeout: 8 * s, RetryDelay: s/2 - 2},
		{Duration: 30 * s, MaxClockDrift: 1e-12, Margin: s, RenewInterval: 10 * s, RequestTimeout: 8 * s, RetryDelay: s/2 - 1},
	} {
		if o, err := o.Complete(); err != nil || o.StopWindow < 5*s/2 || o.StopWindow > 5*s/2+1 {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// If a StopWindow is too long, the error states the longest StopWindow that fits. If the default
// StopWindow does not fit, the error names a field that the caller has set.
func TestStopWindowThatDoesNotFit(t *testing.T) {
	const s = time.Second
	fits := 30*s - 10*s - 10*s - 2500*time.Millisecond - time.Millisecond // less the drift
	for _, c := range []struct {
		o       session.Options
		refused string // the field that the error names
	}{
		{session.Options{StopWindow: fits}, "Options.StopWindow"},
		{session.Options{StopWindow: fits - 60*time.Millisecond}, ""},
		{session.Options{StopWindow: lease.Infinite - 1}, "Options.StopWindow"},
		{session.Options{RenewInterval: 14900 * time.Millisecond}, ""}, // the default StopWindow is shorter than usual
		{session.Options{RenewInterval: 17 * s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: s / 4}, ""},
		{session.Options{RenewInterval: 18 * s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: s}, "Options.RenewInterval"},
		{session.Options{RenewInterval: 17 * s, StopWindow: -s}, ""},
		{session.Options{RenewInterval: 18 * s, StopWindow: -s}, "Options.RenewInterval"},
		{session.Options{Duration: lease.Infinite, StopWindow: time.Hour}, ""},
	} {
		_, err := c.o.Complete()
		field := new(lease.FieldError)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.refused == "":
		case !errors.As(err, &field) || field.Field != c.refused || field.Code != lease.ErrOption || !strings.Contains(field.Bound, "must be at most"):
			t.Errorf("%+v: %v, want a refusal of %s with its bound", c.o, err, c.refused)
		}
	}
}
