package engine

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

const (
	toleratedBehind = time.Second // a clock that is behind by less only makes leases a little longer
	warnBehindEvery = time.Minute
	clockDrift      = 0.001 // the largest error of the rate of a holder's clock
)

// A LateClock corrects errors that occur when the clock of a server was set back. It finds leases that have
// already ended, although they have not ended by the clock of the server. A holder renews its lease before
// the remaining time of the record is over, and each renewal changes the version. So if this process has seen
// the same version for longer than the remaining time, the lease has ended. If the holder nevertheless renews
// the lease later, the renewal changes the version, so a Swap that is based on the old version fails.
type LateClock struct {
	Server string       // the name of the product, for the log
	Logger *slog.Logger // gets a warning at most once a minute; nil means slog.Default() at the time of the warning
	Most   int          // the largest number of names to remember

	mu     sync.Mutex
	seen   map[string]seenRecord // records that are newer than the clock, by name
	warned time.Time
}

// A seenRecord says when, on the local clock, a version of a record was first seen.
type seenRecord struct {
	version string
	at      time.Time
}

// Correct returns snap. If the lease has ended although snap does not show it, Correct first sets snap.Now to
// the end of the lease. The last parameter says by how much the time of the last change of the record is
// later than the clock of the server. For example, it is 5 s if the record was changed at 12:00:05, and the
// clock of the server now shows 12:00:00.
func (c *LateClock) Correct(name string, snap lease.Snapshot, behind time.Duration) lease.Snapshot {
	left := snap.Record.Until.Sub(snap.Now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if behind <= toleratedBehind {
		delete(c.seen, name)
		return snap
	}
	now := time.Now()
	if c.warned.IsZero() || now.Sub(c.warned) > warnBehindEvery {
		c.warned = now
		cmp.Or(c.Logger, slog.Default()).Warn("lease: the clock of the "+c.Server+" server is behind its records: correct it", "behind", behind.Round(time.Millisecond), "name", name)
	}
	if snap.Record.Until.IsZero() || left <= 0 {
		return snap
	}
	first, known := c.seen[name]
	if !known && len(c.seen) >= c.Most {
		for other := range c.seen {
			delete(c.seen, other)
			break
		}
	}
	if first.version != snap.Version {
		if c.seen == nil {
			c.seen = map[string]seenRecord{}
		}
		c.seen[name] = seenRecord{snap.Version, now}
		return snap
	}
	if drift := time.Duration(float64(left) * 2 * clockDrift); now.Sub(first.at) > left+drift {
		snap.Now = snap.Record.Until
	}
	return snap
}
