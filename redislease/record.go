package redislease

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// timeLayout is the layout of all stored times. Stored times always have nine decimals, so that scripts can
// compare them as strings.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

const infinite = "infinite"

// stamp formats a time, and returns "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// digits formats an epoch with 20 digits, so that scripts can compare epochs as strings.
func digits(epoch uint64) string { return fmt.Sprintf("%020d", epoch) }

type column struct {
	name   string
	format func(lease.Record) string
	parse  func(*lease.Record, string)
	rule   string
}

// The array columns contains all fields of a record, in the order in which they are written to the hash. A
// parse function returns no error: parseFields detects a malformed text by formatting the parsed value and
// comparing it with the text.
var columns = [...]column{
	{"state", func(r lease.Record) string { return r.State.String() },
		func(r *lease.Record, s string) { _ = r.State.UnmarshalText([]byte(s)) },
		"must be one of the five states"},
	{"owner", func(r lease.Record) string { return r.Owner },
		func(r *lease.Record, s string) { r.Owner = s }, ""},
	{"until", func(r lease.Record) string { return stamp(r.Until) },
		func(r *lease.Record, s string) { r.Until, _ = time.Parse(timeLayout, s) },
		"must be a time such as 2012-01-26T23:30:33.500000000Z, or empty"},
	{"duration", func(r lease.Record) string { return durationText(r.Duration) },
		func(r *lease.Record, s string) { r.Duration = parseDuration(s) },
		"must be a duration as Go writes it, such as 1m0s, or infinite, or empty"},
	{"epoch", func(r lease.Record) string { return digits(r.Epoch) },
		func(r *lease.Record, s string) { r.Epoch, _ = strconv.ParseUint(s, 10, 64) },
		"must be a number of 20 digits"},
	{"id", func(r lease.Record) string { return idText(r.ID) },
		func(r *lease.Record, s string) { r.ID, _ = lease.ParseID(s) },
		"must be a GUID in lower case, or empty"},
}

func durationText(d time.Duration) string {
	switch d {
	case 0:
		return ""
	case lease.Infinite:
		return infinite
	}
	return d.String()
}

func parseDuration(s string) time.Duration {
	if s == infinite {
		return lease.Infinite
	}
	d, _ := time.ParseDuration(s)
	return d
}

func idText(id lease.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func appendFields(args []any, r lease.Record) []any {
	for _, c := range columns {
		args = append(args, c.name, c.format(r))
	}
	return args
}

// parseFields parses the fields of a hash, and removes them from the map. parseFields checks every value,
// because a person can write a hash by hand.
func parseFields(fields map[string]string) (r lease.Record, version string, err error) {
	corrupt := func(field, value, rule string) error {
		return &lease.FieldError{Field: "Record." + field, Value: strconv.Quote(value), Bound: rule, Code: lease.ErrCorrupt}
	}
	for _, c := range columns {
		value, given := fields[c.name]
		if !given {
			return lease.Record{}, "", corrupt(c.name, "", "must be given")
		}
		if c.parse(&r, value); c.format(r) != value {
			return lease.Record{}, "", corrupt(c.name, value, c.rule)
		}
		delete(fields, c.name)
	}
	version = fields["version"]
	if version == "" {
		return lease.Record{}, "", corrupt("version", "", "must be given")
	}
	delete(fields, "version")
	delete(fields, "time") // only the scripts use it
	for name, value := range fields {
		return lease.Record{}, "", corrupt(name, value, "is not a field of a record")
	}
	return r, version, r.Validate()
}
