package shards

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/numbered"
	"github.com/fencedlease/lease/session"
)

// Options configure a [Group]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Session has the options of every lease of the group. Its Owner names this process in lists and in
	// the View, can be shared, and has at most 850 bytes. Duration must be finite, and TakeOver must not
	// be set. Logger and Trace get only the lease with which the process announces itself: the Group
	// reports the leases of shards itself. Default: the defaults of package session.
	Session *session.Options

	// Interval is the time between two lists of the leases. Default: Session.Duration/6.
	Interval time.Duration

	// Weight is the share of this process beside the others', from 1 to 1,000,000: with Weight 2, it gets
	// twice as many shards as with Weight 1. Default: 1.
	Weight int

	// Max is the most shards of this process at a time. Default: no limit.
	Max int

	// ProgressTimeout is the longest time that the work of a shard may take without a call of
	// [session.Progress] with its context. After that time, the shard is lost with the Reason
	// [lease.ErrNoProgress], another process can have it one Session.Duration later, and this process does
	// not take it for eight Durations. Default: 0, no limit.
	ProgressTimeout time.Duration

	// Grace is how long work may take to stop when its shard moves. Default: Session.Duration.
	Grace time.Duration

	// Trace is a set of hooks. Default: none.
	Trace *Trace

	// Logger receives these records. Default: slog.Default() at the time of each record.
	//
	//   - at Debug, each shard that is taken or given;
	//   - at Info, the number of this process's shards, when all shares are balanced;
	//   - at Warn, how many shards are idle because every process has its Max; at Info, that none is any more;
	//   - at Info, that this process is drained, and that it is not any more;
	//   - at Warn, each shard that is lost, each lease that is broken, and that the process rests because all
	//     its work fails; at Info, that it takes its share again;
	//   - at Warn, the 1st, 2nd, 4th, 8th and so on of a series of failures of one shard, of lists, or of
	//     the function names.
	Logger *slog.Logger
}

func (o *Options) complete() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	s, err := c.Session.Complete()
	if err != nil {
		return nil, err
	}
	c.Session = s
	if c.Interval == 0 {
		c.Interval = min(max(s.Duration/6, time.Millisecond), numbered.MaxInterval)
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.Grace == 0 {
		c.Grace = min(s.Duration, numbered.MaxInterval)
	}
	if c.Trace == nil {
		c.Trace = new(Trace)
	}
	var errs []error
	for _, f := range []struct {
		bad   bool
		field string
		value any
		bound string
	}{
		{s.Duration == lease.Infinite, "Session.Duration", "infinite", "must be finite, so that the shards of a process that has crashed become free"},
		{s.TakeOver, "Session.TakeOver", s.TakeOver, "must be false, because each process has leases of its own"},
		{len(s.Owner) > maxOwner, "Session.Owner", fmt.Sprintf("%d bytes", len(s.Owner)), fmt.Sprintf("must have at most %d bytes", maxOwner)},
		{c.Interval < time.Millisecond, "Interval", c.Interval, "must be at least 1ms; did you forget the unit?"},
		{c.Grace < time.Millisecond, "Grace", c.Grace, "must be at least 1ms; did you forget the unit?"},
		{c.Interval > numbered.MaxInterval, "Interval", c.Interval, "must be at most 4.5 years"},
		{c.Grace > numbered.MaxInterval, "Grace", c.Grace, "must be at most 4.5 years"},
		{c.Weight < 1 || c.Weight > maxWeight, "Weight", c.Weight, fmt.Sprintf("must be from 1 to %d", maxWeight)},
		{c.Max < 0, "Max", c.Max, "must not be negative"},
		{c.ProgressTimeout != 0 && c.ProgressTimeout < time.Millisecond, "ProgressTimeout", c.ProgressTimeout, "must be at least 1ms, or 0 for no limit; did you forget the unit?"},
	} {
		if f.bad {
			errs = append(errs, &lease.FieldError{Field: "Options." + f.field, Value: fmt.Sprint(f.value), Bound: f.bound, Code: lease.ErrOption})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &c, nil
}

const (
	maxOwner  = 850 // leaves place for what memberOwner and shardOwner add
	maxWeight = 1_000_000
)

// maxInterval is the longest interval between two lists, even if a list takes long.
func (o *Options) maxInterval() time.Duration { return max(o.Interval, o.Session.Duration) }
