package lease

import "time"

// A Clock provides the current time to holders and stores. The clocks of benbjohnson/clock,
// k8s.io/utils/clock and jonboulle/clockwork implement this interface. The methods must be safe for
// concurrent use.
type Clock interface {
	// Now returns the current time. Callers compute the time between two calls with [time.Time.Sub], which
	// uses the monotonic clock if both times have a monotonic reading. Callers hold locks while they call
	// Now, so Now must not block, and must not call methods of the holder or the store.
	Now() time.Time

	// After returns a channel that receives one value, the current time, when the duration d has elapsed.
	After(d time.Duration) <-chan time.Time
}
