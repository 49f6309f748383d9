package lease

import (
	"fmt"
	"time"
)

// A Version is a version of the REST interface of Azure Blob Storage. A Version is a date, written as the
// number yyyymmdd. The Version of a request chooses the dialect of [Step]. The zero Version means the newest.
//
// There are two dialects. [Version20120212] introduced the change action, the proposed ID, the lease duration and
// the break period, and changed what some requests do to a released or breaking lease. In the older dialect, Step
// refuses a change request, and ignores the durations in a request. Both dialects require a proposed ID for an
// acquire, because Step is a pure function and cannot generate one.
type Version uint32

const (
	Version20110818 Version = 2011_08_18 // the last version of the older dialect
	Version20120212 Version = 2012_02_12 // the first version of the newer dialect
)

// A Version is valid if it is zero or a date from 2009-09-19 on. If v is valid, v.validate returns nil.
// Otherwise it returns a [*FieldError] with the Code [ErrVersion].
func (v Version) validate() error {
	if v.known() {
		return nil
	}
	return &FieldError{Field: "Version", Value: v.String(), Bound: "must be a date from 2009-09-19 on", Code: ErrVersion}
}

func (v Version) known() bool {
	if v == 0 || v == Version20120212 {
		return true
	}
	y, m, d := v.date()
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return v >= 2009_09_19 && y <= 9999 && t.Day() == d && int(t.Month()) == m
}

func (v Version) date() (y, m, d int) { return int(v) / 10000, int(v) / 100 % 100, int(v) % 100 }

func (v Version) old() bool { return v != 0 && v < Version20120212 }

// durationRequired reports whether an acquire must have a duration. In the older dialect, every lease lasts
// 60 seconds. In the newer dialect, "A call to Lease Blob to acquire a lease now must include a lease
// duration header."
func (v Version) durationRequired() bool { return !v.old() }

// renewsReleased reports whether a lease can be renewed after its release. In the older dialect, this is
// possible until the next write to the blob or the next acquire. In the newer dialect, "You can no longer
// renew a lease after releasing it."
func (v Version) renewsReleased() bool { return v.old() }

// breaksReleased reports whether a lease can be broken after its release. In the older dialect, this is
// possible until the next write to the blob or the next acquire. In the newer dialect, "You can no longer
// break a lease after releasing it."
func (v Version) breaksReleased() bool { return v.old() }

// breaksAgain reports whether a breaking or broken lease can be broken again. In the older dialect, a second
// break is refused with [ErrAlreadyBroken]. In the newer dialect, "You can now break a breaking or broken
// lease, making break operations idempotent."
func (v Version) breaksAgain() bool { return !v.old() }

// String returns the version in the form of the header x-ms-version, such as "2012-02-12", or "newest" for
// the zero Version.
func (v Version) String() string {
	if v == 0 {
		return "newest"
	}
	y, m, d := v.date()
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
}
