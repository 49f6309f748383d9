package lease

import "time"

// A Clock provides the current time to holders and stores. The real and fake clocks of benbjohnson/clock,
// k8s.io/utils/clock and jonboulle/clockwork implement it. The methods must be safe for concurrent use by
// several goroutines.
type Clock interface {
	// Now returns the current time. Callers compute the time between two calls with [time.Time.Sub], which
	// uses the monotonic clock if both times have a reading of it. Callers hold locks while they call Now,
	// so it must not block, and must not call methods of the holder or the store.
	Now() time.Time

	// After returns a channel that receives one value, the current time, when the duration d has elapsed.
	After(d time.Duration) <-chan time.Time
}
