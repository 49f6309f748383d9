package pglease

import (
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// columns are a record as its row has it.
type columns struct {
	state    string
	epoch    int64
	id       string
	owner    string
	duration string
	until    *time.Time
	nanos    int64
}

// pointers are what the columns of a query are scanned into, in the order of values.
func (c *columns) pointers() []any {
	return []any{&c.state, &c.epoch, &c.id, &c.owner, &c.duration, &c.until, &c.nanos}
}

// values are the arguments of a statement that writes r.
func values(r lease.Record) []any {
	var id, until any
	duration, nanos := "", 0
	if !r.ID.IsZero() {
		id = r.ID.String()
	}
	if r.Duration == lease.Infinite {
		duration = infinite
	} else if r.Duration != 0 {
		duration = r.Duration.String()
	}
	if !r.Until.IsZero() {
		until, nanos = whole(r.Until)
	}
	return []any{r.State.String(), int64(r.Epoch), id, r.Owner, duration, until, nanos}
}

const infinite = "infinite"

// whole returns the first whole microsecond that is not before t, and how many nanoseconds t is
// earlier. The server counts in microseconds: it has come to t when it has come to that one.
func whole(t time.Time) (up time.Time, nanos int) {
	if nanos = (1000 - t.Nanosecond()%1000) % 1000; nanos == 0 {
		return t, 0
	}
	return t.Add(time.Duration(nanos)), nanos
}

// record reads the columns. Somebody may have written them by hand.
func (c *columns) record() (lease.Record, error) {
	bad := func(field, value, rule string) (lease.Record, error) {
		return lease.Record{}, &lease.FieldError{Field: "Record." + field, Value: strconv.Quote(value), Bound: rule, Code: lease.ErrCorrupt}
	}
	r := lease.Record{Owner: c.owner, Epoch: uint64(c.epoch)}
	if err := r.State.UnmarshalText([]byte(c.state)); err != nil {
		return bad("State", c.state, "must be one of the five states")
	}
	if c.id != "" {
		id, err := lease.ParseID(c.id)
		if err != nil {
			return bad("ID", c.id, "must be a GUID")
		}
		r.ID = id
	}
	switch d, err := time.ParseDuration(c.duration); {
	case c.duration == infinite:
		r.Duration = lease.Infinite
	case c.duration != "" && err != nil:
		return bad("Duration", c.duration, "must be a duration as Go writes it, such as 1m0s, or infinite")
	default:
		r.Duration = d
	}
	if c.until != nil {
		r.Until = c.until.Add(-time.Duration(c.nanos)).UTC()
	}
	return r, r.Validate()
}
