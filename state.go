package lease

import (
	"fmt"
	"math"
	"time"
)

// A State is one of the five states of a lease. The zero value is [Available].
//
// The Lease Blob document divides the states by two questions, as in this table:
//
//	                Locked     Unlocked
//	Renewable       Leased     Expired
//	Non-renewable   Breaking   Broken, Available
type State uint8

const (
	Available State = iota // unlocked; nobody holds the lease
	Leased                 // locked under the ID
	Expired                // unlocked; the duration is over, but the last ID can still renew the lease
	Breaking               // locked until the break period is over; the ID cannot renew the lease
	Broken                 // unlocked; the break period is over, and the ID cannot renew the lease
)

var stateNames = [...]string{"available", "leased", "expired", "breaking", "broken"}

// Locked reports whether s is Leased or Breaking. While a lease is locked, a request to write to the
// resource must carry the current ID of the lease.
func (s State) Locked() bool { return s == Leased || s == Breaking }

// String returns the name of the state in lower case, such as "leased".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText returns the name of the state, or an error if the state is unknown.
func (s State) MarshalText() ([]byte, error) { return marshalName(stateNames[:], int(s), "state") }

// UnmarshalText sets *s to the state with the given name. The name must be in lower case. If the name is
// unknown, UnmarshalText returns an error and leaves *s unchanged.
func (s *State) UnmarshalText(text []byte) error {
	i, err := unmarshalName(stateNames[:], text, "state")
	if err == nil {
		*s = State(i)
	}
	return err
}

// Infinite is the duration of a lease that never ends by itself. Infinite is the largest [time.Duration], so
// that comparisons with other durations need no special case.
const Infinite time.Duration = math.MaxInt64

// formatDuration returns the text of a duration in records and errors: "infinite" for [Infinite], and
// otherwise the text of the method String, such as "15s".
func formatDuration(d time.Duration) string {
	if d == Infinite {
		return "infinite"
	}
	return d.String()
}

// firstTime and lastTime bound the times in a Record, so that they can be written in RFC 3339 format. The
// zero time in a Record means that the state does not end by itself.
var (
	firstTime = time.Time{}
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	firstUnix = firstTime.Unix()
	lastUnix  = lastTime.Unix()
)

// A Record is all that an authority stores about one lease. The zero Record is a lease that was never held.
// Records are comparable with ==.
//
// Every Record that this package makes or decodes satisfies [Record.Validate]:
//
//   - A Leased or Breaking record has the ID under which the lease is locked. An Expired or Broken record has
//     the ID under which the lease was last locked. An Available record may also have that ID until the next
//     write, because dialects before [Version20120212] can still use that ID.
//   - Until is set if the state ends by itself, and otherwise zero. Breaking always ends by itself, and
//     Leased does unless the Duration is Infinite.
//   - Epoch is at least 1 as soon as there is an ID, and always below 1<<63.
type Record struct {
	ID       ID            // the ID under which the lease is locked, or was locked last; zero if no ID is known
	State    State         // the state when the record was written; At returns the record at a later time
	Owner    string        // a label for people, which proves nothing; it stays when the lease ends
	Duration time.Duration // the granted duration, which each renewal starts again; zero only if ID is zero
	Until    time.Time     // when State ends by itself, in UTC; zero if State does not end by itself
	Epoch    uint64        // the number of the last grant; it rises with every grant and never falls
}

// At returns the record as it is at the given time. If r.Until has been reached by then, the returned record
// is Expired instead of Leased, or Broken instead of Breaking. The Lease Blob document lists these two
// changes as the action "Duration expires".
func (r Record) At(now time.Time) Record {
	r.pass(now)
	return r
}

// pass is like At, but changes *r.
func (r *Record) pass(now time.Time) {
	if r.Until.IsZero() || now.Before(r.Until) {
		return
	}
	r.Until = time.Time{}
	if r.State == Leased {
		r.State = Expired
	} else {
		r.State = Broken
	}
}

// Remaining returns how long the lease stays locked, counted from the given time, if no request changes the
// lease. Remaining returns Infinite for an infinite lease, and 0 if the lease is not locked at that time.
func (r Record) Remaining(now time.Time) time.Duration { return r.remaining(now) }

func (r *Record) remaining(now time.Time) time.Duration {
	switch {
	case !r.State.Locked():
		return 0
	case r.Until.IsZero():
		return Infinite
	}
	return max(0, r.Until.Sub(now)) // the method Sub does not overflow
}

// Token returns the fencing token of the last grant of the lease, or the empty Token if there was no grant.
func (r Record) Token() Token { return TokenOf(r.Epoch) }

// Validate returns nil if the record follows the rules in the documentation of [Record]. Otherwise Validate
// returns a [*FieldError] with the Code [ErrCorrupt]. The FieldError names the invalid field, its value and
// the rule. A store must call Validate on every record that it reads, because [Step] assumes that every
// record is valid.
func (r Record) Validate() error {
	bad := func(field string, value any, rule string) error {
		return &FieldError{Field: "Record." + field, Value: fmt.Sprint(value), Bound: rule, Code: ErrCorrupt}
	}
	held, ends, finite := !r.ID.IsZero(), !r.Until.IsZero(), r.Duration != Infinite
	switch {
	case r.State > Broken:
		return bad("State", uint8(r.State), "must be one of the five states")
	case r.Epoch >= epochLimit:
		return bad("Epoch", r.Epoch, "must be below 1<<63")
	case r.Until != r.Until.UTC(): // UTC strips the monotonic reading
		return bad("Until", r.Until, "must be in UTC and without a monotonic reading")
	case r.Until.Unix() < firstUnix || r.Until.Unix() > lastUnix:
		return bad("Until", r.Until.Unix(), "must lie in the years 1 to 9999")
	case !held && r.State != Available:
		return bad("ID", r.ID, "must be given in state "+r.State.String())
	case held && r.Epoch == 0:
		return bad("Epoch", r.Epoch, "must be at least 1 where an ID is known")
	case held && r.Duration <= 0:
		return bad("Duration", r.Duration, "must be positive where an ID is known")
	case !held && r.Duration != 0:
		return bad("Duration", formatDuration(r.Duration), "must be zero where no ID is known")
	case !held && r.Owner != "":
		return bad("Owner", quote(r.Owner), "must be empty where no ID is known")
	case r.State == Leased && !finite && ends:
		return bad("Until", r.Until, "must be zero for an infinite lease")
	case r.State == Leased && finite && !ends:
		return bad("Until", r.Until, "must be set for a lease that ends")
	case r.State == Expired && !finite:
		return bad("Duration", formatDuration(r.Duration), "must be finite in state expired")
	case r.State == Breaking && !ends:
		return bad("Until", r.Until, "must be set in state breaking")
	case !r.State.Locked() && ends:
		return bad("Until", r.Until, "must be zero in state "+r.State.String())
	}
	if code := checkLabel(r.Owner, ErrOwner); r.Owner != "" && code != 0 {
		return bad("Owner", quote(r.Owner), labelBound)
	}
	return nil
}

// ValidateAfter checks whether a store may replace an earlier record by the record r. If the Epoch of r is
// lower than the Epoch of the earlier record, ValidateAfter returns a [*FieldError] with the Code
// [ErrCorrupt]. Otherwise ValidateAfter returns the result of [Record.Validate].
func (r Record) ValidateAfter(old Record) error {
	if r.Epoch < old.Epoch {
		return &FieldError{"Record.Epoch", fmt.Sprint(r.Epoch), fmt.Sprint("must not fall below ", old.Epoch), ErrCorrupt}
	}
	return r.Validate()
}
