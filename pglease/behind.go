package pglease

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

const (
	toleratedBehind = time.Second // a clock that is less behind only makes leases longer by that
	warnBehindEvery = time.Minute
)

// A lateClock finds leases that have ended although the server's clock, which was set back, does not show
// it. A holder renews its lease within the remaining time of the record, and a renewal changes the
// version, so a record that this process has seen unchanged for longer has ended. If a renewal comes
// after all, the version makes the swap of the record fail.
type lateClock struct {
	logger *slog.Logger
	most   int // names in the field seen

	mu     sync.Mutex
	seen   map[string]seenRecord // records that are newer than the clock, by name
	warned time.Time
}

// A seenRecord has the local time at which a version of a record was first seen.
type seenRecord struct {
	version string
	at      time.Time
}

// correct returns snap with the time at which the lease has ended, if it has. behind is how far the clock
// of the server is behind the last change of the record.
func (c *lateClock) correct(name string, snap lease.Snapshot, behind time.Duration) lease.Snapshot {
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
		c.logger.Warn("lease: the clock of the PostgreSQL server is behind its records: correct it", "behind", behind.Round(time.Millisecond), "name", name)
	}
	if snap.Record.Until.IsZero() || left <= 0 {
		return snap
	}
	first, known := c.seen[name]
	if !known && len(c.seen) >= c.most {
		for other := range c.seen {
			delete(c.seen, other)
			break
		}
	}
	if first.version != snap.Version {
		c.seen[name] = seenRecord{snap.Version, now}
		return snap
	}
	if drift := time.Duration(float64(left) * 2 * observe.DefaultMaxClockDrift); now.Sub(first.at) > left+drift {
		snap.Now = snap.Record.Until
	}
	return snap
}
