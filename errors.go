package lease

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Code says why an authority refused a request, why a holder lost a lease, or what is
// wrong with an argument. It is an error: a target for [errors.Is], a case of a switch,
// the key of a table. The comment of each refusal names the error code under which the
// Blob service reports it.
type Code uint8

const (
	_ Code = iota

	// Refusals: the state of the lease decided.

	ErrHeldByOther   // another lease ID is in force (LeaseAlreadyPresent)
	ErrBreaking      // the ID is in force, but the lease is breaking (LeaseIsBreakingAndCannotBeAcquired, ...Changed)
	ErrBroken        // the ID matched, but the lease has been broken (LeaseIsBrokenAndCannotBeRenewed)
	ErrAlreadyBroken // a second break, before Version20120212 (LeaseAlreadyBroken)
	ErrIDMismatch    // the ID is not the one in force, or not the last one (LeaseIdMismatchWith...Operation)
	ErrIDMissing     // the lease is locked and the write presented no ID (LeaseIdMissing)
	ErrNotPresent    // there is no lease to act on (LeaseNotPresentWith...Operation)
	ErrOver          // the ID presented is the last one, but its lease is over (LeaseLost)
	ErrEpochLimit    // no newer token can be issued under this name

	// Bad arguments: the request can never be granted.

	ErrAction
	ErrVersion
	ErrID       // missing or malformed lease ID
	ErrProposed // missing proposed lease ID
	ErrDuration
	ErrPeriod
	ErrOwner
	ErrName
	ErrToken
	ErrTime   // the authority's time lies before the year 1
	ErrOption // of a constructor

	// What stores answer.

	ErrConflict // Swap: the record is no longer the one that was loaded; certainly not applied
	ErrCorrupt  // what the store holds is not a record

	// What holders answer.

	ErrLost       // the lease was lost; errors.Is says so of every [*LostError], whatever its Reason
	ErrExpired    // the time for which the lease was certain ran out before a renewal was granted
	ErrStopWindow // the lease is about to end, and the work under it must stop before that
	ErrTakenOver  // another process with the same owner has taken the lease over
	ErrReleased   // the holder itself gave the lease up
	ErrNotHeld    // nothing is held
	ErrClosed     // the holder, the registry or the store was closed

	codes
)

var codeNames = [codes]string{
	ErrHeldByOther: "held", ErrBreaking: "breaking", ErrBroken: "broken", ErrAlreadyBroken: "already-broken",
	ErrIDMismatch: "id-mismatch", ErrIDMissing: "id-missing", ErrNotPresent: "not-present", ErrOver: "over",
	ErrEpochLimit: "epoch-limit",
	ErrAction:     "action", ErrVersion: "version", ErrID: "id", ErrProposed: "proposed", ErrDuration: "duration",
	ErrPeriod: "period", ErrOwner: "owner", ErrName: "name", ErrToken: "token", ErrTime: "time", ErrOption: "option",
	ErrConflict: "conflict", ErrCorrupt: "corrupt",
	ErrLost: "lost", ErrExpired: "expired", ErrStopWindow: "stop-window", ErrTakenOver: "taken-over",
	ErrReleased: "released", ErrNotHeld: "not-held", ErrClosed: "closed",
}

var codeTexts = [codes]string{
	ErrHeldByOther:   "another lease ID is in force",
	ErrBreaking:      "the lease is breaking",
	ErrBroken:        "the lease was broken",
	ErrAlreadyBroken: "the lease was already broken",
	ErrIDMismatch:    "the lease ID is not the one in force",
	ErrIDMissing:     "the lease is locked, and no lease ID was presented",
	ErrNotPresent:    "there is no lease",
	ErrOver:          "the lease with this ID is over",
	ErrEpochLimit:    "no newer fencing token can be issued",
	ErrAction:        "unknown action",
	ErrVersion:       "unknown version, or one without this action",
	ErrID:            "missing or malformed lease ID",
	ErrProposed:      "missing proposed lease ID",
	ErrDuration:      "lease duration out of range",
	ErrPeriod:        "break period out of range",
	ErrOwner:         "malformed owner",
	ErrName:          "malformed name",
	ErrToken:         "malformed fencing token",
	ErrTime:          "the authority's time is before the year 1",
	ErrOption:        "option out of range",
	ErrConflict:      "the record has changed since it was loaded",
	ErrCorrupt:       "corrupt record",
	ErrExpired:       "the lease was not renewed in time",
	ErrLost:          "the lease was lost",
	ErrStopWindow:    "the lease is about to end, and its work must stop",
	ErrTakenOver:     "another process with the same owner has taken the lease over",
	ErrReleased:      "the lease was released",
	ErrNotHeld:       "the lease is not held",
	ErrClosed:        "already closed",
}

// Codes returns every Code once, in order.
func Codes() []Code {
	all := make([]Code, 0, codes-1)
	for c := Code(1); c < codes; c++ {
		all = append(all, c)
	}
	return all
}

// Refusal reports whether the state of the lease decided, as against a bad argument and what
// a store or a holder answers. It is certain that a refused request changed nothing, and the
// same request may be granted later.
func (c Code) Refusal() bool { return c >= ErrHeldByOther && c <= ErrEpochLimit }

// Error returns the text of c in plain words.
func (c Code) Error() string {
	if c > 0 && c < codes {
		return codeTexts[c]
	}
	return c.String()
}

// String returns a short name, such as "held" or "id-mismatch".
func (c Code) String() string {
	if c > 0 && c < codes {
		return codeNames[c]
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}

// MarshalText writes the short name; an unknown Code is an error.
func (c Code) MarshalText() ([]byte, error) { return marshalName(codeNames[:], int(c), "code") }

// UnmarshalText reads a short name.
func (c *Code) UnmarshalText(text []byte) error {
	i, err := unmarshalName(codeNames[:], text, "code")
	if err == nil {
		*c = Code(i)
	}
	return err
}

// CodeOf returns the Code in err's tree, and 0 if there is none.
func CodeOf(err error) Code {
	var c Code
	errors.As(err, &c)
	return c
}

// An OpError is what an [Authority] returns: which operation failed on which lease, and why.
type OpError struct {
	Op   string // the action, such as "acquire"
	Name string // of the lease
	Err  error  // a Code for a refusal or a bad argument; anything else: the outcome is unknown
}

func (e *OpError) Error() string {
	s := "lease: " + e.Op + " " + quote(e.Name)
	if e.Err == nil {
		return s
	}
	return s + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// A FieldError is a bad argument, or a bad field of a record: which one, its value and
// the bound that it breaks.
type FieldError struct {
	Field string // such as "Request.Duration"; of an argument, such as "Name" or "Break.a"
	Value string
	Bound string // such as "must be positive"
	Code  Code
}

func (e *FieldError) Error() string { return e.Field + " = " + e.Value + ": " + e.Bound }

// Unwrap returns the Code.
func (e *FieldError) Unwrap() error { return e.Code }

// missing refuses an argument that is nil.
func missing(argument string) error {
	return &FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: ErrOption}
}

// A LostError is what handlers of [Lease.OnLost] are told, and the cause of a context
// from [WhileHeld] that ended with the loss.
type LostError struct {
	Name   string
	Token  Token // of the incarnation that was lost
	Reason Code  // ErrExpired, ErrBroken, or the refusal of a renewal
	Err    error // the last error on the way there; may be nil
}

// Is reports whether target is [ErrLost], so that errors.Is(err, ErrLost) is true of every loss.
// [CodeOf] a LostError is its Reason.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Error() string {
	s := "lease: lost " + quote(e.Name) + ": " + e.Reason.Error()
	if e.Err != nil && CodeOf(e.Err) != e.Reason { // which would say it twice
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the Reason and, if there is one, Err.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// A PermanentError is an error of a store or an authority that no retry can mend, such as a
// missing table or a missing permission. [Permanent] makes one.
type PermanentError struct {
	Err error
}

// Permanent marks err as one that no retry can mend. It returns nil if err is nil, and otherwise
// a [*PermanentError] with the text of err that unwraps to it; [errors.As] finds the mark.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{err}
}

// Error returns the text of Err.
func (e *PermanentError) Error() string {
	if e.Err == nil {
		return "permanent error"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *PermanentError) Unwrap() error { return e.Err }

// quote quotes a value for a message and keeps a hostile one from filling it.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// MaxLabel is the largest size of a name or an owner, in bytes.
const MaxLabel = 1024

const labelBound = "must be valid UTF-8 of 1 to 1024 bytes without NUL"

// CheckName returns nil if name can be the name of a lease: non-empty valid UTF-8 of at
// most [MaxLabel] bytes without NUL. Otherwise it returns a [*FieldError] with the Code
// [ErrName].
func CheckName(name string) error { return labelError("Name", name, ErrName) }

// CheckOwner is CheckName for an owner, with the Code [ErrOwner].
func CheckOwner(owner string) error { return labelError("Owner", owner, ErrOwner) }

func labelError(field, s string, code Code) error {
	if checkLabel(s, code) == 0 {
		return nil
	}
	return &FieldError{Field: field, Value: quote(s), Bound: labelBound, Code: code}
}

func checkLabel(s string, bad Code) Code {
	if s == "" || len(s) > MaxLabel {
		return bad
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == 0:
			return bad
		case c >= utf8.RuneSelf: // until here all was ASCII, and cheap
			if strings.IndexByte(s[i:], 0) >= 0 || !utf8.ValidString(s[i:]) {
				return bad
			}
			return 0
		}
	}
	return 0
}

func marshalName(names []string, i int, kind string) ([]byte, error) {
	if i < 0 || i >= len(names) || names[i] == "" {
		return nil, fmt.Errorf("lease: unknown %s %d", kind, i)
	}
	return []byte(names[i]), nil
}

func unmarshalName(names []string, text []byte, kind string) (int, error) {
	for i, name := range names {
		if name != "" && name == string(text) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("lease: unknown %s %s", kind, quote(string(text)))
}
