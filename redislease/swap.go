package redislease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// Swap puts next in the place of the record that old shows, if the record has not changed and has
// not come to its until since. Beside a conflict it returns the current record.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch < old.Record.Epoch {
		return lease.Snapshot{}, &lease.FieldError{Field: "Record.Epoch", Value: strconv.FormatUint(next.Epoch, 10),
			Bound: fmt.Sprintf("must not fall below %d", old.Record.Epoch), Code: lease.ErrCorrupt}
	}
	if err := next.Validate(); err != nil {
		return lease.Snapshot{}, err
	}
	channel := ""
	if mustSignal(old.Record.At(old.Now), next) {
		channel = s.channel(bucket(name))
	}
	command, millis := s.lasts(next)
	args := []any{old.Version, stamp(old.Now), ahead(old), word(), s.touch(), s.step(),
		digits(raised(old, next)), command, millis, channel, name}
	reply, err := s.run(ctx, swapScript, name, appendFields(args, next)...)
	if err != nil {
		return lease.Snapshot{}, s.explain("swap", s.Key(name), err)
	}
	if !reply.wrote() {
		current, err := reply.snapshot()
		if err != nil {
			current = lease.Snapshot{} // the next load says what is wrong
		}
		return current, lease.ErrConflict
	}
	return reply.committed(next)
}

// renew commits next, which differs from the record of old only in an until that is counted from
// the server's time of the commit. What the script cannot do is a conflict.
func (s *Store) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	number, known := numberOf(old.Version)
	if !known {
		return lease.Snapshot{}, lease.ErrConflict
	}
	d := next.Duration
	version := word() + "-" + strconv.FormatInt(number+1, 10)
	reply, err := s.run(ctx, renewScript, name, old.Version, version, int64(d/time.Second), int64(d%time.Second),
		milliseconds(d)+milliseconds(s.options.Keep), old.Now.Unix()/86400, old.Now.Format("2006-01-02T"))
	switch {
	case err != nil:
		return lease.Snapshot{}, s.explain("renew", s.Key(name), err)
	case !reply.wrote():
		return lease.Snapshot{}, lease.ErrConflict
	}
	now, err := reply.now()
	if err != nil {
		return lease.Snapshot{}, errors.Join(errReply, err)
	}
	next.Until = now.Add(d)
	return lease.Snapshot{Record: next, Version: version, Now: now}, nil
}

// raised is what the epoch of the floor is raised to. A record that is created raises it in any
// case, so that the version of its absence never recurs.
func raised(old lease.Snapshot, next lease.Record) uint64 {
	if strings.HasPrefix(old.Version, absent) && next.Epoch == old.Record.Epoch {
		return min(next.Epoch+1, math.MaxInt64)
	}
	return next.Epoch
}

// numberOf returns the number at the end of a version.
func numberOf(version string) (n int64, ok bool) {
	n, err := strconv.ParseInt(version[strings.LastIndexByte(version, '-')+1:], 10, 64)
	return n, err == nil
}

// word returns the random word of a version. A failover or a restart can lose the latest writes, and
// with them the latest versions. The word keeps them from being given to other states.
func word() string { return strconv.FormatUint(rand.Uint64(), 36) }

// ahead is the end that the record must not have come to, and "" if there is none ahead.
func ahead(old lease.Snapshot) string {
	if !old.Now.Before(old.Record.Until) {
		return ""
	}
	return stamp(old.Record.Until)
}

// lasts returns the command that says how long the record is kept, and its milliseconds.
func (s *Store) lasts(r lease.Record) (command string, millis int64) {
	switch {
	case !r.State.Locked():
		return "PEXPIRE", milliseconds(s.options.Keep)
	case r.Until.IsZero():
		return "PERSIST", 0
	}
	return "PEXPIREAT", r.Until.UnixMilli() + 1 + milliseconds(s.options.Keep)
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	return int64(d/time.Millisecond) + min(1, int64(d%time.Millisecond))
}

// mustSignal reports whether this change of a record must be signalled. See SPEC S7.
func mustSignal(was, next lease.Record) bool {
	switch {
	case next.State == lease.Breaking && was.State != lease.Breaking:
		return true
	case !was.State.Locked():
		return false
	case !next.State.Locked(), next.ID != was.ID, next.Owner != was.Owner:
		return true
	}
	return endsEarlier(next.Until, was.Until)
}

// endsEarlier reports whether a is before b. A zero time is an end that never comes.
func endsEarlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}
