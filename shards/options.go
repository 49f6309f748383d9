package shards

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/session"
)

// Options configure a [Group]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Session has the options of every lease of the group. Its Owner names this process in lists and in the
	// View. Several processes can have the same Owner, which has at most 850 bytes. Duration must be
	// finite, and TakeOver must not be set. Logger and Trace get only the events of the lease with which
	// the process announces itself, because the Group reports the leases of shards itself. Default: the
	// defaults of package session.
	Session *session.Options

	// Interval is the time between two lists of the leases. Default: Session.Duration/6.
	Interval time.Duration

	// Weight is the share of this process compared with those of the others, from 1 to 1,000,000: a process with
	// Weight 2 gets twice as many shards as one with Weight 1. Default: 1.
	Weight int

	// Max is the most shards of this process at a time. Default: no limit.
	Max int

	// ProgressTimeout is the longest time that the work of a shard may go without calling
	// [session.Progress] with its context. After that time, the shard is lost with the Reason
	// [lease.ErrNoProgress]. Another process can have it one Session.Duration later, and this process does
	// not take it again for eight times that. Default: 0, no limit.
	ProgressTimeout time.Duration

	// Grace is how long work may take to stop when its shard moves. Default: Session.Duration.
	Grace time.Duration

	// Trace is a set of hooks. Default: none.
	Trace *Trace

	// Logger receives these records. Default: slog.Default() at the time of each record.
	//
	//   - at Debug, each shard that this process acquires or releases;
	//   - at Info, the number of this process's shards, when all shares are balanced;
	//   - at Warn, how many shards are idle because every process has its Max; at Info, that none is any more;
	//   - at Info, that this process is drained, and that it is not any more; at Warn, a drain lease that
	//     names no process;
	//   - at Warn, each shard that is lost, each lease that is broken, and that the process is in quarantine
	//     because all its work fails; at Info, that it takes its share again;
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
		c.Interval = min(max(s.Duration/6, time.Millisecond), member.MaxInterval)
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.Grace == 0 {
		c.Grace = min(s.Duration, member.MaxInterval)
	}
	if c.Trace == nil {
		c.Trace = new(Trace)
	}
	if err := member.Check(append(member.SessionRules(s, maxOwner, "the shards of a process that has crashed become free", "each process has leases of its own"),
		member.AtLeast("Interval", c.Interval, ""), member.AtMost("Interval", c.Interval),
		member.AtLeast("Grace", c.Grace, ""), member.AtMost("Grace", c.Grace),
		member.Rule{Broken: c.Weight < 1 || c.Weight > maxWeight, Field: "Weight", Value: c.Weight, Bound: fmt.Sprintf("must be from 1 to %d", maxWeight)},
		member.Rule{Broken: c.Max < 0, Field: "Max", Value: c.Max, Bound: "must not be negative"},
		member.AtLeast("ProgressTimeout", cmp.Or(c.ProgressTimeout, time.Second), ", or 0 for no limit"))); err != nil {
		return nil, err
	}
	return &c, nil
}

const (
	maxOwner  = 850 // leaves place for what memberOwner and shardOwner add
	maxWeight = 1_000_000
)

// adapted returns the Interval, made longer if a list takes more than a twentieth of it.
func (o *Options) adapted(took time.Duration) time.Duration {
	return max(o.Interval, min(20*took, max(o.Interval, o.Session.Duration)))
}
