package engine

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A Row is a record in the columns of a database table, for a store whose server has a clock that shows whole
// microseconds. All times are in microseconds since 1970.
//
// The end of a record can be more precise, so a Row contains the end rounded up, and the nanoseconds that the
// rounding has added. The server can compare its clock with the rounded end. For example, if the end is
// 10.5 µs, the rounded end is 11 µs: a clock that shows 10 µs is before both, and a clock that shows 11 µs is
// before neither.
type Row struct {
	State    string // the text of the state, or "" if the lease has no row
	Owner    string // the owner of the record
	ID       string // "" for the zero ID
	Epoch    int64  // if the lease has no row, the highest epoch that any deleted row had
	Duration int64  // in nanoseconds; -1 for [lease.Infinite]
	Until    *int64 // the end, rounded up; nil if the record has none
	Nanos    int64  // the nanoseconds that the rounding has added to Until

	Version int64 // differs after each change of the row
	Changed int64 // the time of the last change
	Now     int64 // the time at which the server has read the row
}

const infiniteColumn = -1

// NewRow returns the columns of the record r. The other fields of the Row are zero.
func NewRow(r lease.Record) Row {
	row := Row{State: r.State.String(), Owner: r.Owner, Epoch: int64(r.Epoch), Duration: int64(r.Duration)}
	if !r.ID.IsZero() {
		row.ID = r.ID.String()
	}
	if r.Duration == lease.Infinite {
		row.Duration = infiniteColumn
	}
	if !r.Until.IsZero() {
		row.Nanos = int64(1000-r.Until.Nanosecond()%1000) % 1000
		row.Until = new(r.Until.Add(time.Duration(row.Nanos)).UnixMicro())
	}
	return row
}

// absentPrefix is the prefix of the version if the lease has no row.
const absentPrefix = "absent-"

// Snapshot returns the record of the named lease. If a column has a bad value, for example because a person
// has changed it, the error wraps [lease.ErrCorrupt]. If the clock of the server is behind the last change of
// the row, the time of the Snapshot is that of the change, or what the method Correct of the given clock
// returns.
func (r Row) Snapshot(name string, clock *LateClock) (lease.Snapshot, error) {
	snap := lease.Snapshot{Version: strconv.FormatInt(r.Version, 10), Now: time.UnixMicro(max(r.Now, r.Changed)).UTC()}
	if r.State == "" {
		snap.Version, snap.Record.Epoch = absentPrefix+snap.Version, uint64(r.Epoch)
		return snap, nil
	}
	var err error
	if snap.Record, err = r.record(); err != nil {
		return lease.Snapshot{}, err
	}
	return clock.Correct(name, snap, time.Duration(r.Changed-r.Now)*time.Microsecond), nil
}

func (r Row) record() (lease.Record, error) {
	record := lease.Record{Owner: r.Owner, Epoch: uint64(r.Epoch), Duration: time.Duration(r.Duration)}
	if err := record.State.UnmarshalText([]byte(r.State)); err != nil {
		return lease.Record{}, corrupt("State", strconv.Quote(r.State), "must be one of the five states")
	}
	if r.ID != "" {
		id, err := lease.ParseID(r.ID)
		if err != nil {
			return lease.Record{}, corrupt("ID", strconv.Quote(r.ID), "must be a GUID")
		}
		record.ID = id
	}
	if r.Duration == infiniteColumn {
		record.Duration = lease.Infinite
	}
	if r.Until != nil {
		record.Until = time.UnixMicro(*r.Until).Add(-time.Duration(r.Nanos)).UTC()
	}
	return record, record.Validate()
}

// ParseVersion returns the version of the row that a Swap must replace, and whether the lease had no row. Its
// argument is the version of a Snapshot of [Row.Snapshot].
func ParseVersion(version string) (v int64, absent bool, err error) {
	digits, absent := strings.CutPrefix(version, absentPrefix)
	v, err = strconv.ParseInt(digits, 10, 64)
	return v, absent, err
}

// SwapTimes limits the time of a Swap that replaces the record old. The server must record no time before
// earliest, and must refuse the Swap if its time is not before end. If the lease had already ended at old.Now,
// earliest is the end of the lease, even if the clock of the server was set back after old.Now.
func SwapTimes(old lease.Snapshot) (earliest, end int64) {
	until := NewRow(old.Record).Until
	switch {
	case until == nil:
		return 0, math.MaxInt64
	case old.Now.Before(old.Record.Until):
		return 0, *until
	}
	return *until, math.MaxInt64
}
