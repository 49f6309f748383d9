package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Duration is a time.Duration with a text form: a number with a unit, such as "15s" or "1m30s", or
// "infinite" for [lease.Infinite]. *Duration is a [flag.Value], and every decoder that supports
// encoding.TextUnmarshaler can decode a Duration. A pointer to a field of [Settings] can be converted to a
// *Duration:
//
//	flag.Var((*provider.Duration)(&settings.Duration), "duration", "how long a lease lasts")
type Duration time.Duration

// String returns the text form of the duration, such as "15s" or "infinite".
func (d Duration) String() string { return fields.Duration(time.Duration(d)) }

// Set parses s, which is "infinite" or any text that [time.ParseDuration] accepts, and stores it in *d. For
// any other text, it returns a [*lease.FieldError] with the code [lease.ErrOption], and leaves *d unchanged.
func (d *Duration) Set(s string) error {
	if s == fields.Duration(lease.Infinite) {
		*d = Duration(lease.Infinite)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return badDuration("Duration", s)
	}
	*d = Duration(parsed)
	return nil
}

// tooLong matches every text in the form that time.ParseDuration accepts. If ParseDuration returns an error
// for such a text, the duration does not fit into an int64.
var tooLong = regexp.MustCompile(`^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)

// badDuration returns the error for a text that is not a Duration.
func badDuration(field, text string) error {
	bound := `must be a number with a unit (h, m, s, ms, us or ns), such as "15s", or "infinite"`
	switch most := lease.Infinite / time.Hour; {
	case !tooLong.MatchString(text):
	case text[0] == '-':
		bound = fmt.Sprintf("must be at least -%dh", most)
	default:
		bound = fmt.Sprintf(`must be at most %dh, or "infinite"`, most)
	}
	return &lease.FieldError{Field: field, Value: fmt.Sprintf("%.80q", text), Bound: bound, Code: lease.ErrOption}
}

// MarshalText returns the text form of the duration. The error is always nil.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text as Set does.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

func (s *Settings) fields() map[string]*time.Duration {
	return map[string]*time.Duration{
		"duration": &s.Duration, "renewInterval": &s.RenewInterval, "requestTimeout": &s.RequestTimeout, "retryDelay": &s.RetryDelay,
		"stopWindow": &s.StopWindow,
	}
}

// MarshalJSON returns an object such as {"duration":"30s","renewInterval":"10s"}. It omits fields that are
// zero, because a zero field means its default.
func (s Settings) MarshalJSON() ([]byte, error) { return json.Marshal(s.texts()) }

// UnmarshalJSON decodes an object of the form that MarshalJSON returns. If a member is missing or null, its
// field does not change. If a member is unknown, is given twice or is not the text of a [Duration], the error
// is a [*lease.FieldError] with the code [lease.ErrOption]. If data is not a JSON object, the error is that
// of package encoding/json. After an error, *s is unchanged. [New] and [Settings.Validate] check whether the
// times are consistent with each other.
func (s *Settings) UnmarshalJSON(data []byte) error {
	return s.decode(func(v any) error {
		if err := json.Unmarshal(data, v); err != nil {
			return err
		}
		return givenTwice(data)
	})
}

// givenTwice returns an error if two members of a JSON object have the same key, because package json would
// ignore the first of them. The object must be valid.
func givenTwice(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token() // the opening brace, or null
	seen := map[any]bool{}
	for d.More() {
		key, _ := d.Token()
		if seen[key] {
			return &lease.FieldError{Field: "Settings", Value: fmt.Sprintf("%.80q", key), Bound: "must not be given twice", Code: lease.ErrOption}
		}
		seen[key] = true
		_ = d.Decode(new(json.RawMessage))
	}
	return nil
}

// MarshalYAML returns a map with the same fields that MarshalJSON writes, for packages that encode YAML.
func (s Settings) MarshalYAML() (any, error) { return s.texts(), nil }

// UnmarshalYAML decodes the same fields as [Settings.UnmarshalJSON], with the same errors. If unmarshal
// fails, UnmarshalYAML returns its error. YAML packages that pass a decoding function to this method can use
// it, for example gopkg.in/yaml.v3, go.yaml.in/yaml/v3 and github.com/goccy/go-yaml.
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
			return &lease.FieldError{Field: "Settings", Value: fmt.Sprintf("%.80q", name),
				Bound: "is not a setting; the settings are " + strings.Join(slices.Sorted(maps.Keys(fields)), ", "), Code: lease.ErrOption}
		}
		text, ok := values[name].(string)
		switch {
		case values[name] == nil:
			continue
		case !ok || (*Duration)(field).Set(text) != nil:
			return badDuration("Settings."+strings.ToUpper(name[:1])+name[1:], fmt.Sprint(values[name]))
		}
	}
	*s = next
	return nil
}
