package provider_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/provider"
)

// A configuration is the configuration of a program, and has Settings as one part.
type configuration struct {
	Kind  string            `json:"kind"`
	Lease provider.Settings `json:"lease"`
}

func TestSettingsFromJSON(t *testing.T) {
	for text, want := range map[string]provider.Settings{
		`{"kind":"pg","lease":{"duration":"15s","renewInterval":"5s","requestTimeout":"2s","retryDelay":"500ms","stopWindow":"3s"}}`: {
			Duration: 15 * s, RenewInterval: 5 * s, RequestTimeout: 2 * s, RetryDelay: s / 2, StopWindow: 3 * s},
		`{"lease":{"duration":"infinite"}}`:                {Duration: lease.Infinite},
		`{"lease":{"duration":"1m30s","retryDelay":null}}`: {Duration: 90 * s},
		`{"lease":{}}`: {},
		`{}`:           {},
	} {
		var c configuration
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Lease != want {
			t.Errorf("%s: %+v, %v", text, c.Lease, err)
		}
	}
}

// The error for refused JSON names the field, the value and the bound, and the Settings do not change.
func TestSettingsRefusedFromJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"lease":{"duration":15}}`:                            `Settings.Duration = "15": must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`,
		`{"lease":{"duration":"15s","renewInterval":"soon"}}`:  `Settings.RenewInterval = "soon": must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`,
		`{"lease":{"retryDelay":""}}`:                          `Settings.RetryDelay = "": must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`,
		`{"lease":{"duration":"1d"}}`:                          `Settings.Duration = "1d": must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`,
		`{"lease":{"duration":"999999999h"}}`:                  `Settings.Duration = "999999999h": must be at most 2562047h, or "infinite"`,
		`{"lease":{"duration":"15s","duration":"15s"}}`:        `Settings = "duration": must not be given twice`,
		`{"lease":{"stopWindow":null,"\u0073topWindow":"5s"}}`: `Settings = "stopWindow": must not be given twice`,
		`{"lease":{"renew-interval":"5s"}}`:                    `Settings = "renew-interval": is not a setting; the settings are duration, renewInterval, requestTimeout, retryDelay, stopWindow`,
	} {
		was := provider.Settings{Duration: s, RetryDelay: 2 * s}
		c := configuration{Lease: was}
		if err := json.Unmarshal([]byte(text), &c); err == nil || err.Error() != want || lease.CodeOf(err) != lease.ErrOption || c.Lease != was {
			t.Errorf("%s: %+v, %v; want %s", text, c.Lease, err, want)
		}
	}
}

// YAML packages call UnmarshalYAML with a function that decodes the YAML value. A number is decoded as an
// int, and an empty value as nil.
func TestSettingsFromYAML(t *testing.T) {
	decode := func(values map[string]any) (set provider.Settings, err error) {
		err = set.UnmarshalYAML(func(v any) error { *v.(*map[string]any) = values; return nil })
		return set, err
	}
	want := provider.Settings{Duration: lease.Infinite, RequestTimeout: 2 * s}
	if set, err := decode(map[string]any{"duration": "infinite", "requestTimeout": "2s", "retryDelay": nil}); err != nil || set != want {
		t.Errorf("%+v, %v", set, err)
	}
	if set, err := decode(nil); err != nil || set != (provider.Settings{}) {
		t.Errorf("nothing: %+v, %v", set, err)
	}
	if set, err := decode(map[string]any{"duration": 15}); lease.CodeOf(err) != lease.ErrOption || set != (provider.Settings{}) {
		t.Errorf("a number without a unit: %+v, %v", set, err)
	}
	var set provider.Settings
	if err := set.UnmarshalYAML(func(any) error { return io.EOF }); err != io.EOF {
		t.Errorf("what cannot be decoded: %v", err)
	}
	written, err := want.MarshalYAML()
	texts := map[string]string{"duration": "infinite", "requestTimeout": "2s"}
	if err != nil || !reflect.DeepEqual(written, any(texts)) {
		t.Errorf("written: %v, %v", written, err)
	}
}

func TestSettingsFromFlags(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	set := provider.Settings{Duration: 30 * s}
	flags.Var((*provider.Duration)(&set.Duration), "duration", "of a lease")
	flags.Var((*provider.Duration)(&set.RetryDelay), "retry", "delay")
	if err := flags.Parse([]string{"-duration", "infinite", "-retry=250ms"}); err != nil || set != (provider.Settings{Duration: lease.Infinite, RetryDelay: s / 4}) {
		t.Errorf("%+v, %v", set, err)
	}
	if err := flags.Parse([]string{"-duration", "15"}); err == nil || set.Duration != lease.Infinite {
		t.Errorf("a number without a unit: %v, %v", set.Duration, err)
	}
	if shown := flags.Lookup("duration"); shown.DefValue != "30s" || shown.Value.String() != "infinite" {
		t.Errorf("default %q, value %q", shown.DefValue, shown.Value)
	}
}

// A refused text is not a duration, or is a duration that is too long to store.
func TestDurationRefused(t *testing.T) {
	const unit = `must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`
	for text, bound := range map[string]string{
		"": unit, "15": unit, "soon": unit, "1d": unit, "15 s": unit, "15s ": unit, "s": unit, ".s": unit, "-": unit, "1h1d": unit, "99999999999999999999": unit,
		"2562047h48m": `must be at most 2562047h, or "infinite"`, "1h999999999999999999999ns": `must be at most 2562047h, or "infinite"`,
		"+.5h2562047.5h": `must be at most 2562047h, or "infinite"`, "99999999999999999µs": `must be at most 2562047h, or "infinite"`,
		"-999999999h": `must be at least -2562047h`,
	} {
		d := provider.Duration(s)
		var bad *lease.FieldError
		if err := d.Set(text); !errors.As(err, &bad) || bad.Field != "Duration" || bad.Bound != bound || bad.Code != lease.ErrOption {
			t.Errorf("%q: %v, want %s", text, err, bound)
		}
		if d != provider.Duration(s) {
			t.Errorf("%q: a refused text set the duration to %v", text, d)
		}
	}
	for _, text := range []string{"2562047h", "2562047h47m16.854775807s", "-2562047h"} {
		if err := new(provider.Duration).Set(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A duration that is written as text and read again stays the same.
func TestSettingsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.OneOf(rapid.SampledFrom([]time.Duration{0, lease.Infinite, time.Second}), rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }))
		set := provider.Settings{Duration: some.Draw(t, "duration"), RenewInterval: some.Draw(t, "interval"), RequestTimeout: some.Draw(t, "timeout"), RetryDelay: some.Draw(t, "retry"), StopWindow: some.Draw(t, "window")}
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		var read provider.Settings
		if err := json.Unmarshal(text, &read); err != nil || read != set {
			t.Fatalf("%+v is written as %s and read as %+v, %v", set, text, read, err)
		}
		var d provider.Duration
		written, _ := provider.Duration(set.Duration).MarshalText()
		if err := d.UnmarshalText(written); err != nil || d != provider.Duration(set.Duration) {
			t.Fatalf("%v is written as %s and read as %v, %v", set.Duration, written, d, err)
		}
	})
}
