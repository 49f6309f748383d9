package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A Duration is a time.Duration as people write it: a number with a unit, such as "15s" or
// "1m30s", or "infinite", which is [lease.Infinite]. It is a [flag.Value], and it decodes from any
// format that knows encoding.TextUnmarshaler. A field of [Settings] converts to it in place:
//
//	flag.Var((*provider.Duration)(&settings.Duration), "duration", "how long a lease lasts")
type Duration time.Duration

const infinite = "infinite"

// String returns the duration as it is written, such as "15s" or "infinite".
func (d Duration) String() string {
	if time.Duration(d) == lease.Infinite {
		return infinite
	}
	return time.Duration(d).String()
}

// Set reads what String returns, and whatever else [time.ParseDuration] reads. Anything else is a
// [*lease.FieldError] with the code [lease.ErrOption], and leaves *d unchanged.
func (d *Duration) Set(s string) error {
	if s == infinite {
		*d = Duration(lease.Infinite)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return badDuration("Duration", fmt.Sprintf("%.80q", s))
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText writes what String returns.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what Set reads.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

func badDuration(field, value string) error {
	return &lease.FieldError{Field: field, Value: value, Bound: `must be a number with a unit, such as "15s", or "infinite"`, Code: lease.ErrOption}
}

// fields returns the fields of s under their names in configurations.
func (s *Settings) fields() map[string]*time.Duration {
	return map[string]*time.Duration{
		"duration": &s.Duration, "renewInterval": &s.RenewInterval, "requestTimeout": &s.RequestTimeout, "retryDelay": &s.RetryDelay,
	}
}

// MarshalJSON writes an object such as {"duration":"30s","renewInterval":"10s"}. Zero fields, which
// stand for defaults, are left out.
func (s Settings) MarshalJSON() ([]byte, error) { return json.Marshal(s.texts()) }

// UnmarshalJSON reads what MarshalJSON writes. A member that is missing or null leaves its field as
// it is. An unknown member, and a value that is not the text of a [Duration], are a
// [*lease.FieldError] with the code [lease.ErrOption], and leave *s unchanged. Whether the times go
// together is for [New] to say, and for [Settings.Validate].
func (s *Settings) UnmarshalJSON(data []byte) error {
	return s.decode(func(v any) error { return json.Unmarshal(data, v) })
}

// MarshalYAML is MarshalJSON for packages of YAML.
func (s Settings) MarshalYAML() (any, error) { return s.texts(), nil }

// UnmarshalYAML is UnmarshalJSON for packages of YAML that call it with a function, such as
// gopkg.in/yaml.v3, go.yaml.in/yaml/v3 and github.com/goccy/go-yaml.
func (s *Settings) UnmarshalYAML(unmarshal func(any) error) error { return s.decode(unmarshal) }

func (s *Settings) texts() map[string]string {
	texts := map[string]string{}
	for name, field := range s.fields() {
		if *field != 0 {
			texts[name] = Duration(*field).String()
		}
	}
	return texts
}

func (s *Settings) decode(unmarshal func(any) error) error {
	var values map[string]any
	if err := unmarshal(&values); err != nil {
		return err
	}
	next := *s
	fields := next.fields()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field := fields[name]
		if field == nil {
			return &lease.FieldError{Field: "Settings", Value: strconv.Quote(name),
				Bound: "must be one of " + strings.Join(slices.Sorted(maps.Keys(fields)), ", "), Code: lease.ErrOption}
		}
		text, ok := values[name].(string)
		switch {
		case values[name] == nil:
			continue
		case !ok || (*Duration)(field).Set(text) != nil:
			return badDuration("Settings."+name, fmt.Sprintf("%.80q", fmt.Sprint(values[name])))
		}
	}
	*s = next
	return nil
}
