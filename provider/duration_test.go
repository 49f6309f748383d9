package provider_test

import (
	"encoding/json"
	"flag"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/provider"
)

// A configuration of a program, of which the settings are a part.
type configuration struct {
	Kind  string            `json:"kind"`
	Lease provider.Settings `json:"lease"`
}

func TestSettingsFromJSON(t *testing.T) {
	for text, want := range map[string]provider.Settings{
		`{"kind":"pg","lease":{"duration":"15s","renewInterval":"5s","requestTimeout":"2s","retryDelay":"500ms"}}`: {
			Duration: 15 * s, RenewInterval: 5 * s, RequestTimeout: 2 * s, RetryDelay: s / 2},
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

// The error for refused JSON names the field, the value and the bound, and the Settings do not
// change.
func TestSettingsRefusedFromJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"lease":{"duration":15}}`:                           `Settings.duration = "15": must be a number with a unit, such as "15s", or "infinite"`,
		`{"lease":{"duration":"15s","renewInterval":"soon"}}`: `Settings.renewInterval = "soon": must be a number with a unit, such as "15s", or "infinite"`,
		`{"lease":{"retryDelay":""}}`:                         `Settings.retryDelay = "": must be a number with a unit, such as "15s", or "infinite"`,
		`{"lease":{"renew-interval":"5s"}}`:                   `Settings = "renew-interval": must be one of duration, renewInterval, requestTimeout, retryDelay`,
	} {
		was := provider.Settings{Duration: s, RetryDelay: 2 * s}
		c := configuration{Lease: was}
		if err := json.Unmarshal([]byte(text), &c); err == nil || err.Error() != want || lease.CodeOf(err) != lease.ErrOption || c.Lease != was {
			t.Errorf("%s: %+v, %v; want %s", text, c.Lease, err, want)
		}
	}
}

// Packages of YAML call the method with a function that decodes what stands there. Numbers come as
// int, and nothing as nil.
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
	if texts, ok := written.(map[string]string); err != nil || !ok || len(texts) != 2 || texts["duration"] != "infinite" || texts["requestTimeout"] != "2s" {
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

// A duration that is written and read is the same.
func TestSettingsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.OneOf(rapid.SampledFrom([]time.Duration{0, lease.Infinite, time.Second}), rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }))
		set := provider.Settings{Duration: some.Draw(t, "duration"), RenewInterval: some.Draw(t, "interval"), RequestTimeout: some.Draw(t, "timeout"), RetryDelay: some.Draw(t, "retry")}
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
