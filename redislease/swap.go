package redislease

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Swap replaces the record only if its version is still old.Version. If the record has changed, or if the
// lease has ended since old.Now, Swap returns [lease.ErrConflict] and the current Snapshot, which is zero if
// the current record is not valid.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := engine.CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch > old.Record.Epoch { // a grant
		next.Epoch = max(next.Epoch, s.floor+1)
	}
	channel := ""
	if engine.NeedsSignal(old.Record.At(old.Now), next) {
		channel = s.channel(bucket(name))
	}
	command, millis := s.expireCommand(next)
	args := []any{old.Version, stamp(old.Now), swapDeadline(old), randomWord(), s.saveTime(), s.keepMicros(),
		digits(raisedEpoch(old, next)), command, millis, channel, name}
	reply, err := s.run(ctx, other, swapScript, name, &change{old.Record, next}, appendFields(args, next)...)
	switch {
	case err == lease.ErrConflict:
		current, damaged := reply.snapshot(name, &s.clock)
		if damaged != nil {
			current = lease.Snapshot{} // the next load returns this error
		}
		return current, err
	case err != nil:
		return lease.Snapshot{}, s.describeError("swap", s.Key(name), err)
	}
	return reply.committed(next)
}

// renew replaces old.Record with next, which differs only in Until: the server computes the new Until from
// its own time. renew returns [lease.ErrConflict] if another field of the record has changed, or if the lease
// has ended. renew also returns ErrConflict if the server's clock is behind the time in the record, or if
// old.Version does not end with a number.
func (s *Store) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	number, known := numberOf(old.Version)
	if !known {
		return lease.Snapshot{}, lease.ErrConflict
	}
	d := next.Duration
	version := randomWord() + "-" + strconv.FormatInt(number+1, 10)
	reply, err := s.run(ctx, renewal, renewScript, name, &change{old.Record, next}, old.Version, version, int64(d/time.Second), int64(d%time.Second),
		milliseconds(d)+milliseconds(s.options.Keep), old.Now.Unix()/86400, old.Now.Format("2006-01-02T"),
		idText(next.ID), digits(next.Epoch), next.Owner, durationText(d))
	switch {
	case err == lease.ErrConflict:
		return lease.Snapshot{}, err
	case err != nil:
		return lease.Snapshot{}, s.describeError("renew", s.Key(name), err)
	}
	now, err := reply.now()
	if err != nil {
		return lease.Snapshot{}, errors.Join(errReply, err)
	}
	next.Until = now.Add(d)
	return lease.Snapshot{Record: next, Version: cmp.Or(reply.text(2), version), Now: now}, nil
}

// raisedEpoch returns the epoch to which Swap raises the floor of the bucket, unless the floor is higher
// already. A Swap that creates a record always raises the floor. The version of a missing record contains the
// epoch of the floor, so this version never recurs.
func raisedEpoch(old lease.Snapshot, next lease.Record) uint64 {
	if strings.HasPrefix(old.Version, absentPrefix) && next.Epoch == old.Record.Epoch {
		return min(next.Epoch+1, math.MaxInt64)
	}
	return next.Epoch
}

func numberOf(version string) (n int64, ok bool) {
	n, err := strconv.ParseInt(version[strings.LastIndexByte(version, '-')+1:], 10, 64)
	return n, err == nil
}

// randomWord returns the random part of a version. Without this random part, a write could get the same
// version as an earlier write that was lost in a failover or a restart.
func randomWord() string { return strconv.FormatUint(rand.Uint64(), 36) }

// swapDeadline returns the time at which the state in old.Record ends. From then on, the server must refuse
// the swap. The result is "" if the state does not end by itself, or if the state had already ended at the
// time old.Now.
func swapDeadline(old lease.Snapshot) string {
	if !old.Now.Before(old.Record.Until) {
		return ""
	}
	return stamp(old.Record.Until)
}

// expireCommand returns the Redis command that sets when a record expires, and the argument of that command.
// The argument of PEXPIRE is a duration in milliseconds, that of PEXPIREAT is a Unix time in milliseconds,
// and PERSIST has none.
func (s *Store) expireCommand(r lease.Record) (command string, millis int64) {
	switch {
	case !r.State.Locked():
		return "PEXPIRE", milliseconds(s.options.Keep)
	case r.Until.IsZero():
		return "PERSIST", 0
	}
	return "PEXPIREAT", r.Until.UnixMilli() + 1 + milliseconds(s.options.Keep)
}

func milliseconds(d time.Duration) int64 {
	return int64(d/time.Millisecond) + min(1, int64(d%time.Millisecond))
}
