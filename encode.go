package lease

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// recordFields lists the fields of a Record in the order in which they are written. Every value is plain
// text, so that people can read it with the tools of the database that stores the record.
//
// The function get returns the text of a field, or "" if the encoding leaves the field out. The function set
// parses a text into the field. When the method form.record has parsed the text of a field, it encodes the
// parsed value again. If the new text differs from the given text, form.record returns an error. So
// form.record accepts only one text for each value of a field.
var recordFields = [...]struct {
	key  string
	get  func(*Record) string
	set  func(*Record, string)
	rule string
}{
	{"state", func(r *Record) string { return r.State.String() },
		func(r *Record, s string) { _ = r.State.UnmarshalText([]byte(s)) },
		"must be one of the five states"},
	{"epoch", func(r *Record) string { return strconv.FormatUint(r.Epoch, 10) },
		func(r *Record, s string) { r.Epoch, _ = strconv.ParseUint(s, 10, 64) },
		"must be a number below 1<<63"},
	{"id", func(r *Record) string { return unlessZero(r.ID, ID.String) },
		func(r *Record, s string) { r.ID, _ = ParseID(s) },
		"must be a GUID in format D, in lower case"},
	{"duration", func(r *Record) string { return unlessZero(r.Duration, formatDuration) },
		func(r *Record, s string) { r.Duration = parseDuration(s) },
		"must be a duration as Go writes it, such as 1m0s, or infinite"},
	{"until", func(r *Record) string { return unlessZero(r.Until, timeText) },
		func(r *Record, s string) { r.Until = parseTime(s) },
		"must be a time such as 2012-01-26T23:30:33.5Z, in UTC and without trailing zeros"},
	{"owner", func(r *Record) string { return r.Owner },
		func(r *Record, s string) { r.Owner = s },
		"must not be empty"},
}

// unlessZero returns text(v), or "" if v is the zero value.
func unlessZero[T comparable](v T, text func(T) string) string {
	var zero T
	if v == zero {
		return ""
	}
	return text(v)
}

func parseDuration(s string) time.Duration {
	if s == "infinite" {
		return Infinite
	}
	d, _ := time.ParseDuration(s)
	return d
}

func timeText(t time.Time) string { return t.Format(time.RFC3339Nano) }

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t.UTC()
}

// A form is a record that has not been decoded yet. It maps the key of each field to its text.
type form map[string]string

// add adds the text of one field. It returns an error if the key is unknown or was added before.
func (f form) add(key, value string) error {
	wrong := ""
	if _, twice := f[key]; twice {
		wrong = "must not be given twice"
	} else if !known(key) {
		wrong = "is not a field of a record"
	}
	if wrong != "" {
		return &FieldError{Field: "Record", Value: quote(key), Bound: wrong, Code: ErrCorrupt}
	}
	f[key] = value
	return nil
}

func known(key string) bool {
	for _, field := range recordFields {
		if field.key == key {
			return true
		}
	}
	return false
}

// record decodes the form and validates the record. It returns an error if a required field is missing, or
// if a decoded field would be encoded as a different text.
func (f form) record() (Record, error) {
	var r Record
	for _, field := range recordFields {
		value, given := f[field.key]
		if given {
			field.set(&r, value)
		}
		switch again := field.get(&r); {
		case !given && again != "":
			return Record{}, corrupt(field.key, "", "must be given")
		case given && (value != again || value == ""):
			return Record{}, corrupt(field.key, value, field.rule)
		}
	}
	return r, r.Validate()
}

func corrupt(key, value, rule string) error {
	return &FieldError{Field: "Record." + key, Value: quote(value), Bound: rule, Code: ErrCorrupt}
}

// MarshalJSON returns the record as a JSON object such as
//
//	{"state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5",
//	 "duration":"15s","until":"2012-01-26T23:30:33Z","owner":"worker-1"}
//
// MarshalJSON leaves out fields with a zero value, except state and epoch, and writes an infinite duration as
// "infinite". If the record is not valid, the error is that of [Record.Validate].
func (r Record) MarshalJSON() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	b := []byte{'{'}
	for _, field := range recordFields {
		text := field.get(&r)
		if text == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, field.key), ':')
		if field.key == "epoch" {
			b = append(b, text...)
			continue
		}
		value, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON decodes an object that MarshalJSON returned. The members may be in any order, with any white
// space and any escapes, because a database may reformat the object. Keys must be in lower case, and values
// in the form that MarshalJSON writes.
//
// If the data is not valid, UnmarshalJSON leaves *r unchanged and returns a [*FieldError] with the Code
// [ErrCorrupt]. In particular, the data is not valid if
//
//   - a required member is missing, or a member is unknown, null or given twice
//   - a string has an escaped UTF-16 surrogate that is not part of a pair
//   - [Record.Validate] returns an error for the record
func (r *Record) UnmarshalJSON(data []byte) error {
	f, err := parseJSON(data)
	if err != nil {
		return err
	}
	next, err := f.record()
	if err != nil {
		return err
	}
	*r = next
	return nil
}

// parseJSON decodes the object token by token. It does not call json.Unmarshal, which ignores the case of
// keys and accepts a key that is given twice.
func parseJSON(data []byte) (form, error) {
	object := &FieldError{Field: "Record", Value: quote(string(data)), Bound: "must be one JSON object of strings, and of a number for its epoch", Code: ErrCorrupt}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !utf8.Valid(data) || halfPair(data) {
		return nil, object
	}
	f := form{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, object
		}
		if token, err = d.Token(); err != nil {
			return nil, object
		}
		value, ok := token.(string)
		if key == "epoch" {
			var number json.Number
			number, ok = token.(json.Number)
			value = number.String()
		}
		if !ok {
			return nil, object
		}
		if err := f.add(key, value); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, object
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, object
	}
	return f, nil
}

// halfPair reports whether the JSON data has an escaped UTF-16 surrogate, such as \ud800, that is not
// part of a pair. Package json decodes a lone surrogate as U+FFFD, which is a different character.
func halfPair(data []byte) bool {
	for {
		i := bytes.IndexByte(data, '\\')
		if i < 0 {
			return false
		}
		high, n := unescape(data[i:])
		data = data[i+n:]
		if utf16.IsSurrogate(high) {
			low, n := unescape(data)
			if utf16.DecodeRune(high, low) == utf8.RuneError {
				return true
			}
			data = data[n:]
		}
	}
}

// unescape decodes the escape \uXXXX at the beginning of data. It returns the number XXXX and the length of
// the escape, which is 6 bytes. For other data, it returns -1 and the number of bytes to skip, at most 2.
func unescape(data []byte) (rune, int) {
	if len(data) >= 6 && data[0] == '\\' && data[1] == 'u' {
		if n, err := strconv.ParseUint(string(data[2:6]), 16, 16); err == nil {
			return rune(n), 6
		}
	}
	return -1, min(2, len(data))
}

// MarshalText returns the record as one line of text. The fields are in the order of this example:
//
//	leased epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=15s until=2012-01-26T23:30:33Z owner="worker-1"
//
// MarshalText leaves out fields with a zero value, except state and epoch. Two records are equal if and only
// if their texts are equal. If the record is not valid, the error is that of [Record.Validate].
func (r Record) MarshalText() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	b := []byte(r.State.String())
	for _, field := range recordFields[1:] {
		text := field.get(&r)
		if text == "" {
			continue
		}
		b = append(append(append(b, ' '), field.key...), '=')
		if field.key == "owner" {
			b = strconv.AppendQuote(b, text)
		} else {
			b = append(b, text...)
		}
	}
	return b, nil
}

const textRule = "must be state, epoch, id, duration, until and owner, in this order and as they are written"

// UnmarshalText decodes a text that MarshalText returned. If the text is not valid, UnmarshalText
// leaves *r unchanged and returns a [*FieldError] with the Code [ErrCorrupt].
func (r *Record) UnmarshalText(text []byte) error {
	f, err := parseText(string(text))
	if err != nil {
		return err
	}
	next, err := f.record()
	if err != nil {
		return err
	}
	if again, err := next.MarshalText(); err != nil || !bytes.Equal(again, text) {
		return &FieldError{Field: "Record", Value: quote(string(text)), Bound: textRule, Code: ErrCorrupt}
	}
	*r = next
	return nil
}

func parseText(s string) (form, error) {
	words, owner, owned := strings.Cut(s, " owner=")
	state, words, more := strings.Cut(words, " ")
	f := form{"state": state}
	for more {
		var word string
		word, words, more = strings.Cut(words, " ")
		key, value, _ := strings.Cut(word, "=")
		if err := f.add(key, value); err != nil {
			return nil, err
		}
	}
	if owned {
		name, err := strconv.Unquote(owner)
		if err != nil {
			return nil, corrupt("owner", owner, "must be quoted, and the last word")
		}
		return f, f.add("owner", name)
	}
	return f, nil
}
