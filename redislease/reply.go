package redislease

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A reply is the result of the load or the swap script:
//
//   - If the script wrote the record: 1, the time, and the new version.
//   - If the script wrote no record, and the name has none: 0, the time, a version, and an epoch.
//   - If the script wrote no record, and the name has one: 0, the time, the time of the server's clock if it
//     is earlier (otherwise an empty string), an empty string, and the fields of the record.
//
// The script renew.lua replies with the time of the server if it has renewed the lease, and otherwise with
// nil. But if it has renewed a record with another version than expected, it replies with 1, the time, and
// the new version.
type reply []any

func replyOf(cmd *redis.Cmd) (reply, error) {
	result, err := cmd.Result()
	switch v := result.(type) {
	case []any:
		return v, err
	case string:
		return reply{int64(1), v}, err
	}
	if errors.Is(err, redis.Nil) {
		return reply{int64(0)}, nil
	}
	if err == nil {
		err = errReply
	}
	return nil, err
}

var errReply = errors.New("the answer of the script has an unknown form: does a proxy rewrite answers?")

func (r reply) wrote() bool { return len(r) > 0 && r[0] == int64(1) }

func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

func (r reply) now() (time.Time, error) { return parseTime(r.text(1)) }

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(timeLayout, text)
	if err != nil {
		return time.Time{}, &lease.FieldError{Field: "Record.time", Value: strconv.Quote(text), Bound: "must be a time such as 2012-01-26T23:30:33.500000000Z", Code: lease.ErrCorrupt}
	}
	return t, nil
}

func (r reply) committed(next lease.Record) (lease.Snapshot, error) {
	now, err := r.now()
	if err != nil || r.text(2) == "" {
		return lease.Snapshot{}, errors.Join(errReply, err)
	}
	return lease.Snapshot{Record: next, Version: r.text(2), Now: now}, nil
}

// If a lease has no record, the Version in its Snapshot begins with absentPrefix.
const absentPrefix = "absent-"

// snapshot returns the Snapshot of a lease from the reply to a load. If the clock of the server is set back
// after the end of a lease, the lease looks as if it had not ended. The parameter late corrects such a
// Snapshot.
func (r reply) snapshot(name string, late *engine.LateClock) (lease.Snapshot, error) {
	now, err := r.now()
	if err != nil {
		return lease.Snapshot{}, err
	}
	if len(r) < 4 || len(r)%2 != 0 {
		return lease.Snapshot{}, fmt.Errorf("%d parts: %w", len(r), errReply)
	}
	if len(r) == 4 {
		epoch, err := strconv.ParseUint(r.text(3), 10, 63)
		if err != nil || digits(epoch) != r.text(3) {
			return lease.Snapshot{}, &lease.FieldError{Field: "floor.epoch", Value: strconv.Quote(r.text(3)), Bound: "must be a number of 20 digits", Code: lease.ErrCorrupt}
		}
		return lease.Snapshot{Record: lease.Record{Epoch: epoch}, Version: r.text(2), Now: now}, nil
	}
	fields := map[string]string{}
	for i := 4; i < len(r); i += 2 {
		fields[r.text(i)] = r.text(i + 1)
	}
	record, version, err := parseFields(fields)
	if err != nil {
		return lease.Snapshot{}, err
	}
	clock := now
	if r.text(2) != "" { // the clock of the server is behind the last write of the record
		if clock, err = parseTime(r.text(2)); err != nil {
			return lease.Snapshot{}, err
		}
	}
	return late.Correct(name, lease.Snapshot{Record: record, Version: version, Now: now}, now.Sub(clock)), nil
}
