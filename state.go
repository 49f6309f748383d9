package lease

import (
	"fmt"
	"math"
	"time"
)

// A State is one of the five states of a lease. The zero value is [Available].
//
// Two questions divide them, as in the table of the Lease Blob document:
//
//	                Locked     Unlocked
//	Renewable       Leased     Expired
//	Non-renewable   Breaking   Broken, Available
type State uint8

const (
	Available State = iota // unlocked; there is no holder
	Leased                 // locked by the ID in force
	Expired                // unlocked; the duration has run out, and the ID may still renew
	Breaking               // locked until the break period is over; the ID may not renew
	Broken                 // unlocked; the break period is over, and the ID may not renew
)

var stateNames = [...]string{"available", "leased", "expired", "breaking", "broken"}

// Locked reports whether a write must present the ID in force: Leased and Breaking.
func (s State) Locked() bool { return s == Leased || s == Breaking }

// Renewable reports whether the holder of the ID may renew: Leased and Expired.
func (s State) Renewable() bool { return s == Leased || s == Expired }

// String returns the state's name in the documents' words, in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText writes the name of the state; an unknown state is an error.
func (s State) MarshalText() ([]byte, error) { return marshalName(stateNames[:], int(s), "state") }

// UnmarshalText reads one of the five names, in lower case.
func (s *State) UnmarshalText(text []byte) error {
	i, err := unmarshalName(stateNames[:], text, "state")
	if err == nil {
		*s = State(i)
	}
	return err
}

// Infinite is the duration of a lease that never ends by itself. It is the largest
// Duration, so that comparisons and minima need no special case.
const Infinite time.Duration = math.MaxInt64

// The ends of the time that a Record can hold: what RFC 3339 can write. The zero
// time itself means "does not end".
var (
	firstTime = time.Time{}
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	firstUnix = firstTime.Unix()
	lastUnix  = lastTime.Unix()
)

// A Record is all that an authority remembers of one lease. The zero Record is a lease that nobody
// ever held. Records are comparable.
//
// Every Record that this package makes or decodes satisfies [Record.Validate]:
//
//   - Leased and Breaking have an ID; Expired and Broken keep the last one; Available
//     may keep it (until the next write), because dialects before [Version20120212]
//     still know it.
//   - Until is set when the state ends by itself: in Breaking always, in Leased unless
//     the Duration is Infinite, in the other states never.
//   - Epoch is at least 1 as soon as there is an ID, and below 1<<63.
type Record struct {
	ID       ID            // the ID in force, or the last one; zero if none is known
	State    State         // as it was written; At says what it is at a later time
	Owner    string        // a label for people; never a proof of anything
	Duration time.Duration // as granted, and as a renewal grants again; zero only if ID is zero
	Until    time.Time     // when State ends by itself, in UTC; zero if it does not
	Epoch    uint64        // the number of the last grant: rises with every grant, and never falls
}

// At returns the record as it stands at now. At now >= Until, Leased becomes Expired and Breaking
// becomes Broken. This is the passing of time, which the outcome table lists as the action "Duration
// expires".
func (r Record) At(now time.Time) Record {
	r.pass(now)
	return r
}

// pass is At in place.
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

// Remaining returns how long after now the lease stays locked, if nothing else happens. It is
// Infinite for an infinite lease, and 0 if the lease is not locked at now.
func (r Record) Remaining(now time.Time) time.Duration { return r.remaining(now) }

func (r *Record) remaining(now time.Time) time.Duration {
	switch {
	case !r.State.Locked():
		return 0
	case r.Until.IsZero():
		return Infinite
	}
	return max(0, r.Until.Sub(now)) // Sub saturates
}

// Token returns the fencing token of the record's last grant, or the empty Token if
// there was none.
func (r Record) Token() Token { return TokenOf(r.Epoch) }

// Validate returns nil if the record keeps the rules stated on [Record]. Otherwise it returns a
// [*FieldError] with the Code [ErrCorrupt] that names the field, its value and the rule. A store
// must call it on every record that it reads, because [Step] assumes that records are valid.
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
	case r.Until != r.Until.UTC(): // which strips the monotonic reading
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
		return bad("Duration", r.Duration, "must be zero where no ID is known")
	case !held && r.Owner != "":
		return bad("Owner", quote(r.Owner), "must be empty where no ID is known")
	case r.State == Leased && !finite && ends:
		return bad("Until", r.Until, "must be zero for an infinite lease")
	case r.State == Leased && finite && !ends:
		return bad("Until", r.Until, "must be set for a lease that ends")
	case r.State == Expired && !finite:
		return bad("Duration", "infinite", "must be finite in state expired")
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
