package clock

import (
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A Stopwatch measures the time that has elapsed since its start, which never decreases, even if the clock
// goes back. Call Start before any other method. All other methods may be called by several goroutines.
type Stopwatch struct {
	clock   lease.Clock // nil for package time
	started time.Time
	origin  time.Time    // the time in the field started, in UTC and without a monotonic reading
	last    atomic.Int64 // the largest elapsed time of an injected clock
}

// Start starts the stopwatch on the clock c. If c is nil, the stopwatch uses package time.
func (s *Stopwatch) Start(c lease.Clock) {
	s.clock, s.started = c, time.Now()
	if c != nil {
		s.started = c.Now()
	}
	s.origin = s.started.Round(0).UTC()
}

// Clock returns the clock that was passed to Start.
func (s *Stopwatch) Clock() lease.Clock { return s.clock }

// Elapsed returns the time that has elapsed since the start.
func (s *Stopwatch) Elapsed() time.Duration {
	if s.clock == nil {
		return time.Since(s.started) // uses the monotonic clock
	}
	elapsed := int64(s.clock.Now().Sub(s.started))
	for {
		last := s.last.Load()
		if elapsed <= last {
			return time.Duration(last)
		}
		if s.last.CompareAndSwap(last, elapsed) {
			return time.Duration(elapsed)
		}
	}
}

// PointAt returns the time of the start plus the given elapsed time, in UTC.
func (s *Stopwatch) PointAt(elapsed time.Duration) time.Time { return s.origin.Add(elapsed) }

// Now returns the current time in UTC, and the time that has elapsed since the start.
func (s *Stopwatch) Now() (time.Time, time.Duration) {
	elapsed := s.Elapsed()
	return s.PointAt(elapsed), elapsed
}
