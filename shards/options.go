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
	// Session has the options of every lease of the group. Its Owner names this process in the leases and in
	// the View. An Owner has at most 850 bytes, and several processes can have the same one. Duration must be
	// finite, and TakeOver must not be set. The Logger and the Trace of the Session do not report events of
	// the shards' leases, because the Group itself reports these events. Default: the defaults of package
	// session.
	Session *session.Options

	// Interval is the time from one list of the leases to the next. Default: Session.Duration/6.
	Interval time.Duration

	// Weight is from 1 to 1,000,000. A process with Weight 2 gets twice as many shards as a process with
	// Weight 1. Default: 1.
	Weight int

	// Max is the largest number of shards that this process works on at the same time. Default: no limit.
	Max int

	// ProgressTimeout is the longest time that the work of a shard may go without calling [session.Progress]
	// with its context. After that time, the process loses the shard with the Reason [lease.ErrNoProgress].
	// Another process can take the shard one Session.Duration later, but this process does not take it again
	// for eight times Session.Duration. Default: 0, no limit.
	ProgressTimeout time.Duration

	// Grace is how long the work of a shard may take to stop when the shard should move to another process.
	// Default: Session.Duration.
	Grace time.Duration

	// The Group calls the functions of Trace when it acquires or loses a shard, and at other events. Default:
	// none.
	Trace *Trace

	// Logger receives these records. Default: slog.Default() at the time of each record.
	//
	//   - at Debug, each shard that this process acquires or releases;
	//   - at Info, the number of this process's shards, when all shares are balanced;
	//   - at Warn, how many shards are idle because every process has its Max, and at Info, that no shard is
	//     idle any more;
	//   - at Info, that an operator drains this process, or no longer drains it;
	//   - at Warn, a drain lease that names no process;
	//   - at Warn, each shard that this process loses, and each lease that it breaks;
	//   - at Warn, that the process is in quarantine because all its work fails, and at Info, that it has
	//     left the quarantine;
	//   - at Warn, the 1st, 2nd, 4th, 8th and so on of a series of failures of one shard, of lists, or of the
	//     function names.
	Logger *slog.Logger
}

func (o *Options) complete() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	s, err := member.CompleteSession(c.Session)
	if err != nil {
		return nil, err
	}
	c.Session = s
	c.Interval = cmp.Or(c.Interval, min(max(s.Duration/6, time.Millisecond), member.MaxInterval))
	c.Weight = cmp.Or(c.Weight, 1)
	c.Grace = cmp.Or(c.Grace, min(s.Duration, member.MaxInterval))
	c.Trace = cmp.Or(c.Trace, new(Trace))
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
	maxOwner  = 850 // leaves room for what the owners of leases add
	maxWeight = 1_000_000
)

// adapted returns the time until the next list. It is longer than the Interval if the last list was slow.
func (o *Options) adapted(took time.Duration) time.Duration {
	return max(o.Interval, min(20*took, max(o.Interval, o.Session.Duration)))
}
