package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// recordFields is a Record as text. Every field is a word that a person can read with
// the tools of the engine that stores it.
type recordFields struct {
	State    State    `json:"state"`
	ID       ID       `json:"id,omitzero"`
	Owner    string   `json:"owner,omitempty"`
	Duration duration `json:"duration,omitzero"`
	Until    instant  `json:"until,omitzero"`
	Epoch    uint64   `json:"epoch"`
}

// MarshalJSON writes the record as an object such as
//
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1",
//	 "duration":"15s","until":"2012-01-26T23:30:33Z","epoch":7}
//
// Fields that are zero are left out, but for state and epoch; the duration of an infinite
// lease is "infinite". A record that is not [Record.Valid] is not written.
func (r Record) MarshalJSON() ([]byte, error) {
	if err := r.Valid(); err != nil {
		return nil, err
	}
	return json.Marshal(recordFields{r.State, r.ID, r.Owner, duration(r.Duration), instant(r.Until), r.Epoch})
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown field, a missing state or epoch
// and a record that is not [Record.Valid] are errors that lead to [ErrCorrupt]; *r is then
// unchanged.
func (r *Record) UnmarshalJSON(data []byte) error {
	var f struct {
		recordFields
		State *State  `json:"state"`
		Epoch *uint64 `json:"epoch"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return corrupt(data, err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return corrupt(data, "must be one JSON object")
	}
	if f.State == nil || f.Epoch == nil {
		return corrupt(data, "must have a state and an epoch")
	}
	return r.set(Record{*f.State, f.ID, f.Owner, time.Duration(f.Duration), time.Time(f.Until), *f.Epoch})
}

// MarshalText writes the record as one line of words, in this order, such as
//
//	leased epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=15s until=2012-01-26T23:30:33Z owner="worker-1"
//
// Fields that are zero are left out, but for state and epoch. A record that is not
// [Record.Valid] is not written.
func (r Record) MarshalText() ([]byte, error) {
	if err := r.Valid(); err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "%s epoch=%d", r.State, r.Epoch)
	if !r.ID.IsZero() {
		b = fmt.Appendf(b, " id=%s duration=%s", r.ID, duration(r.Duration))
	}
	if !r.Until.IsZero() {
		b = append(b, " until="...)
		b = r.Until.AppendFormat(b, time.RFC3339Nano)
	}
	if r.Owner != "" {
		b = append(b, " owner="...)
		b = strconv.AppendQuote(b, r.Owner)
	}
	return b, nil
}

// UnmarshalText reads what MarshalText writes, under the rules of UnmarshalJSON.
func (r *Record) UnmarshalText(text []byte) error {
	var next Record
	words, owner, owned := strings.Cut(string(text), " owner=")
	if owned {
		var err error
		if next.Owner, err = strconv.Unquote(owner); err != nil || next.Owner == "" || owner[0] != '"' {
			return corrupt(text, "must end with a quoted owner, if any")
		}
	}
	word, rest, _ := strings.Cut(words, " ")
	if err := next.State.UnmarshalText([]byte(word)); err != nil {
		return corrupt(text, "must begin with a state")
	}
	fields := []struct {
		key      string
		required bool
		set      func(string) error
	}{
		{"epoch=", true, func(s string) (err error) {
			next.Epoch, err = strconv.ParseUint(s, 10, 64)
			return err
		}},
		{"id=", false, func(s string) error { return next.ID.UnmarshalText([]byte(s)) }},
		{"duration=", false, func(s string) error { return (*duration)(&next.Duration).UnmarshalText([]byte(s)) }},
		{"until=", false, func(s string) error { return (*instant)(&next.Until).UnmarshalText([]byte(s)) }},
	}
	for _, f := range fields {
		if !strings.HasPrefix(rest, f.key) {
			if f.required {
				return corrupt(text, "must have "+f.key)
			}
			continue
		}
		word, rest, _ = strings.Cut(rest, " ")
		if err := f.set(word[len(f.key):]); err != nil {
			return corrupt(text, err.Error())
		}
	}
	if rest != "" {
		return corrupt(text, "must have no other words")
	}
	return r.set(next)
}

func (r *Record) set(next Record) error {
	if err := next.Valid(); err != nil {
		return err
	}
	*r = next
	return nil
}

func corrupt(text []byte, rule string) error {
	return &FieldError{Field: "Record", Value: quote(string(text)), Bound: rule, Code: ErrCorrupt}
}

// A duration is a Duration as text, "infinite" for Infinite.
type duration time.Duration

func (d duration) String() string {
	if time.Duration(d) == Infinite {
		return "infinite"
	}
	return time.Duration(d).String()
}

func (d duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	if string(text) == "infinite" {
		*d = duration(Infinite)
		return nil
	}
	v, err := time.ParseDuration(string(text))
	if err == nil && v == Infinite {
		err = fmt.Errorf("duration %s must be written as infinite", text)
	}
	*d = duration(v)
	return err
}

// An instant is a Time as RFC 3339 text in UTC.
type instant time.Time

func (t instant) IsZero() bool { return time.Time(t).IsZero() }

func (t instant) MarshalText() ([]byte, error) { return time.Time(t).MarshalText() }

func (t *instant) UnmarshalText(text []byte) error {
	v, err := time.Parse(time.RFC3339Nano, string(text))
	*t = instant(v.UTC())
	return err
}
