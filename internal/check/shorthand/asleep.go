package shorthand

import (
	"testing"
	"time"
	"unsafe"
)

// Asleep returns a reading of the clock at the time from+d, if the computer was suspended for the
// time slept in between. While the computer is suspended, its monotonic clock stands still.
func Asleep(t *testing.T, from time.Time, d, slept time.Duration) time.Time {
	to := from.Add(d)
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&to)).ext -= int64(slept)
	if to.Sub(from) != d-slept || to.Round(0).Sub(from.Round(0)) != d {
		t.Fatalf("cannot make a time whose clocks differ: %v", to)
	}
	return to
}
