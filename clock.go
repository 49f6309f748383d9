package lease

import "time"

// A Clock tells the time to holders and stores. The clocks of benbjohnson/clock, k8s.io/utils/clock
// and jonboulle/clockwork, real and fake, are Clocks. The methods must be safe for use by several
// goroutines at once.
type Clock interface {
	// Now returns the current time. Callers use the time between two readings, on the monotonic
	// clock if the readings carry it. Callers hold locks while they call Now: it must not wait
	// and must not call back.
	Now() time.Time

	// After returns a channel that gets the time once, when d has passed.
	After(d time.Duration) <-chan time.Time
}
