package pglease

import (
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

type columns struct {
	state    string
	epoch    int64
	id       string
	owner    string
	duration string
	until    *time.Time
	nanos    int64
}

// scanArgs returns pointers to the fields of c, in the order of the columns in the SQL statements.
func (c *columns) scanArgs() []any {
	return []any{&c.state, &c.epoch, &c.id, &c.owner, &c.duration, &c.until, &c.nanos}
}

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
		until, nanos = roundUp(r.Until)
	}
	return []any{r.State.String(), int64(r.Epoch), id, r.Owner, duration, until, nanos}
}

const infinite = "infinite"

// roundUp rounds t up to a whole microsecond, and returns how many nanoseconds it has added. The server
// compares its clock, which shows whole microseconds, with the rounded time. The result is the same as for t
// itself. For example, if t is 10.4 µs, a clock that shows 10 µs is before t and before the rounded time of
// 11 µs, and a clock that shows 11 µs is before neither.
func roundUp(t time.Time) (up time.Time, nanos int) {
	if nanos = (1000 - t.Nanosecond()%1000) % 1000; nanos == 0 {
		return t, 0
	}
	return t.Add(time.Duration(nanos)), nanos
}

// record returns the lease.Record in the columns. record checks every value, because a person can write a row
// by hand.
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
