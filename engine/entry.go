package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An Entry is the record of a lease in the form in which a [Backend] stores it, with its version.
type Entry struct {
	Retained

	// Version is the version that [Backend.Swap] compares. It follows the rules of [lease.Snapshot.Version].
	Version string

	// Revision orders the entries of one name: an entry that was written later has a higher Revision, unless
	// the server has lost the earlier entry. Entries with the same Revision and Version are the same entry.
	Revision int64

	// Foreign is true if a program that does not use this library holds the lease. The Limits of the
	// Store do not apply to such a lease.
	Foreign bool

	// Unwritten is true if no Swap of this library has written the Epoch. Such an Epoch comes from a number
	// that the server increases at every write, such as a revision. The Store adds [Options.Floor] to such an
	// Epoch.
	Unwritten bool
}

// A NamedEntry is an Entry that [Backend.List] returns, together with the name of its lease.
type NamedEntry struct {
	Name string // the name of the lease
	Entry
}

// Retained is a record in the form in which a [Backend] writes it. It contains the remaining time of the
// lease when the record was written. It does not contain the time at which the lease ends, because the clocks
// of other processes may differ.
type Retained struct {
	Record lease.Record  // the record, with a zero Until
	Left   time.Duration // the time left; never negative; 0 if the state of the record does not end by itself
}

// resolution is the unit of Left.
const resolution = time.Millisecond

// toRetained converts the record r to a Retained. If r.Until is set, toRetained computes the remaining time
// from now until r.Until, and rounds it up to whole milliseconds. If less than one millisecond is left, the
// result contains one millisecond.
func toRetained(r lease.Record, now time.Time) Retained {
	k := Retained{Record: r}
	if !r.Until.IsZero() {
		k.Left = max(resolution, roundUp(r.Until.Sub(now)))
		k.Record.Until = time.Time{}
	}
	return k
}

func roundUp(d time.Duration) time.Duration {
	if d > math.MaxInt64-resolution {
		return math.MaxInt64
	}
	if part := d % resolution; part > 0 {
		d += resolution - part
	}
	return d
}

func (k Retained) ends() bool {
	r := k.Record
	return r.State == lease.Breaking || r.State == lease.Leased && r.Duration != lease.Infinite
}

// Validate returns nil if k.Left is valid, k.Record.Until is zero, and all other fields of k.Record are
// valid. Otherwise it returns a [*lease.FieldError] with the Code [lease.ErrCorrupt].
func (k Retained) Validate() error {
	r := k.Record
	switch {
	case k.ends() && k.Left < 0:
		return corrupt("Left", k.Left.String(), "must not be negative")
	case !k.ends() && k.Left != 0:
		return corrupt("Left", k.Left.String(), "must be zero in a state that does not end by itself")
	case !r.Until.IsZero():
		return corrupt("Until", r.Until.String(), "must be zero")
	}
	if k.ends() {
		r.Until = time.Unix(0, 0).UTC() // any time, because r.Validate requires one
	}
	return r.Validate()
}

func corrupt(field, value, rule string) error {
	return &lease.FieldError{Field: "Record." + field, Value: value, Bound: rule, Code: lease.ErrCorrupt}
}

type retainedFields struct {
	State    *lease.State `json:"state"`
	ID       lease.ID     `json:"id,omitzero"`
	Owner    string       `json:"owner,omitempty"`
	Duration string       `json:"duration,omitempty"`
	Left     string       `json:"left,omitempty"`
	Epoch    *uint64      `json:"epoch"`
}

const infinite = "infinite"

// MarshalJSON returns k as a JSON object such as
//
//	{"state":"leased","id":"1f812371-a41d-49e6-b123-f4b542e851c5","owner":"worker-1",
//	 "duration":"15s","left":"15s","epoch":7}
//
// The members "state" and "epoch" are always present. The member "left" is present if the state ends by
// itself. Other members with a zero value are omitted. An infinite duration is written as "infinite". If
// [Retained.Validate] returns an error, so does MarshalJSON.
func (k Retained) MarshalJSON() ([]byte, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	r := k.Record
	f := retainedFields{State: &r.State, ID: r.ID, Owner: r.Owner, Epoch: &r.Epoch}
	switch {
	case r.Duration == lease.Infinite:
		f.Duration = infinite
	case r.Duration != 0:
		f.Duration = r.Duration.String()
	}
	if k.ends() {
		f.Left = k.Left.String()
	}
	return json.Marshal(f)
}

// UnmarshalJSON decodes an object that MarshalJSON returned. The members may be in any order, with any white
// space and any escapes. UnmarshalJSON rejects data that is not a valid object, an object in which a member
// occurs twice, and a value that MarshalJSON would write in another form. In these cases, UnmarshalJSON
// leaves *k unchanged, and returns an error that wraps [lease.ErrCorrupt].
func (k *Retained) UnmarshalJSON(data []byte) error {
	text, left, err := split(data)
	if err != nil {
		return err
	}
	var next Retained
	if err := next.Record.UnmarshalJSON(text); err != nil {
		return notRetained(data, strings.NewReplacer("until", "left", "Until", "left").Replace(ruleOf(err)))
	}
	next.Record.Until = time.Time{}
	if next.ends() {
		if next.Left, err = time.ParseDuration(left); err != nil || next.Left.String() != left {
			return notRetained(data, "must have a left such as 1m0s, as Go writes it")
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*k = next
	return nil
}

// split converts the JSON of a Retained, which has a member "left", to the JSON of a [lease.Record], which
// has a member "until". split removes "left" and returns its value, and adds an "until" with an arbitrary
// value, so that Record.UnmarshalJSON can check all other members.
func split(data []byte) (record []byte, left string, err error) {
	const rule = "must be one JSON object"
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, "", notRetained(data, rule)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, "", notRetained(data, rule)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, "", notRetained(data, rule)
		}
		switch key {
		case "until":
			return nil, "", notRetained(data, "must not have an until")
		case "left":
			if json.Unmarshal(value, &left) != nil {
				return nil, "", notRetained(data, "must have a text as its left")
			}
			key, value = "until", json.RawMessage(`"1970-01-01T00:00:00Z"`)
		}
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, "", err
		}
		record = append(append(append(append(record, ','), quoted...), ':'), value...)
	}
	if _, err := d.Token(); err != nil {
		return nil, "", notRetained(data, rule)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, "", notRetained(data, rule)
	}
	if len(record) == 0 {
		return []byte("{}"), "", nil
	}
	record[0] = '{'
	return append(record, '}'), left, nil
}

// ruleOf returns the text of an error of Record.UnmarshalJSON, but leaves out the rejected value.
func ruleOf(err error) string {
	var bad *lease.FieldError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	return strings.TrimPrefix(bad.Field+" ", "Record ") + bad.Bound
}

func notRetained(data []byte, rule string) error {
	const most = 120
	value := strconv.Quote(string(data[:min(most, len(data))]))
	if len(data) > most {
		value += fmt.Sprintf("... (%d bytes)", len(data))
	}
	return &lease.FieldError{Field: "Record", Value: value, Bound: rule, Code: lease.ErrCorrupt}
}
