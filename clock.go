package lease

import "time"

// A Clock provides the current time to holders and stores. The real and fake clocks of
// benbjohnson/clock, k8s.io/utils/clock and jonboulle/clockwork implement Clock. The methods must be
// safe for concurrent use by several goroutines.
type Clock interface {
	// Now returns the current time. Callers compute the time between two calls with
	// [time.Time.Sub]. Sub uses the monotonic clock if both times have a monotonic clock reading.
	// Callers hold locks while they call Now. An implementation of Now must not block, and must not
	// call methods of the holder or the store.
	Now() time.Time

	// After returns a channel. When the duration d has elapsed, the channel receives one value, the
	// current time.
	After(d time.Duration) <-chan time.Time
}
