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

// A Duration is a time.Duration that can be written and read as text. The text is a number with a
// unit, such as "15s" or "1m30s". The text "infinite" stands for [lease.Infinite]. A *Duration is a
// [flag.Value]. Every decoder that supports encoding.TextUnmarshaler can decode a Duration. A
// pointer to a field of [Settings] can be converted to a *Duration:
//
//	flag.Var((*provider.Duration)(&settings.Duration), "duration", "how long a lease lasts")
type Duration time.Duration

const infinite = "infinite"

// String returns the text form of the duration, such as "15s" or "infinite".
func (d Duration) String() string {
	if time.Duration(d) == lease.Infinite {
		return infinite
	}
	return time.Duration(d).String()
}

// Set parses s and stores the duration in *d. Set accepts "infinite" and every text that
// [time.ParseDuration] accepts. For any other text, Set returns a [*lease.FieldError] with the code
// [lease.ErrOption], and leaves *d unchanged.
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

// MarshalText returns the same text as String. Its error is always nil.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text as Set does.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

func badDuration(field, value string) error {
	return &lease.FieldError{Field: field, Value: value, Bound: `must be a number with a unit, such as "15s", or "infinite"`, Code: lease.ErrOption}
}

// fields returns pointers to the fields of s. The keys are the names of the fields in a
// configuration.
func (s *Settings) fields() map[string]*time.Duration {
	return map[string]*time.Duration{
		"duration": &s.Duration, "renewInterval": &s.RenewInterval, "requestTimeout": &s.RequestTimeout, "retryDelay": &s.RetryDelay,
	}
}

// MarshalJSON returns an object such as {"duration":"30s","renewInterval":"10s"}. MarshalJSON
// leaves out the fields that are zero, because a zero field stands for its default.
func (s Settings) MarshalJSON() ([]byte, error) { return json.Marshal(s.texts()) }

// UnmarshalJSON decodes an object of the form that MarshalJSON returns. If a member is missing or
// null, UnmarshalJSON does not change the corresponding field. If a member is unknown, or if its
// value is not the text of a [Duration], UnmarshalJSON returns a [*lease.FieldError] with the code
// [lease.ErrOption], and leaves *s unchanged. If data is not a JSON object, UnmarshalJSON returns
// the error of package encoding/json, and leaves *s unchanged. UnmarshalJSON does not check whether
// the times in the object are consistent with each other. [New] and [Settings.Validate] check this
// consistency.
func (s *Settings) UnmarshalJSON(data []byte) error {
	return s.decode(func(v any) error { return json.Unmarshal(data, v) })
}

// MarshalYAML returns a map with the same fields that MarshalJSON writes. YAML packages call it.
func (s Settings) MarshalYAML() (any, error) { return s.texts(), nil }

// UnmarshalYAML decodes the same fields as UnmarshalJSON, and returns the same errors for them. If
// the call of the function unmarshal returns an error, UnmarshalYAML returns that error.
// UnmarshalYAML works with YAML packages that pass a decoding function to this method, such as
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
