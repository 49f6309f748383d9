package lease

import "time"

// A Clock is where holders and stores get their time from. The clocks of benbjohnson/clock,
// k8s.io/utils/clock and jonboulle/clockwork, real and fake, are Clocks as they stand.
// Methods may be called from any number of goroutines. Now is called with locks held: it must
// neither wait nor call back. What a store counts is the time between two readings, on the
// monotonic clock if they carry it.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}
