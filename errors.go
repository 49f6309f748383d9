package lease

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Code is an error that says why an authority refused a request, why a holder lost a lease, or what is
// wrong with an argument. A Code can be the target of [errors.Is]. For a switch statement with Codes as its
// cases, [CodeOf] returns the Code of an error. If a constant corresponds to an error code of the Azure Blob
// service, its comment ends with that error code, in parentheses.
type Code uint8

const (
	_ Code = iota

	// Refusals. The state of the lease did not allow the request.

	ErrHeldByOther   // another holder has the lease: it is locked under another lease ID (LeaseAlreadyPresent)
	ErrBreaking      // the lease is locked under this ID, but it is breaking (LeaseIsBreakingAndCannotBeAcquired, ...Changed)
	ErrBroken        // the lease with this ID has been broken; [LostError] says when a break leads to another Code (LeaseIsBrokenAndCannotBeRenewed)
	ErrAlreadyBroken // a second break, in a dialect before Version20120212 (LeaseAlreadyBroken)
	ErrIDMismatch    // the ID is not the current or last ID, or was released (LeaseIdMismatchWith...Operation)
	ErrIDMissing     // the lease is locked and the write presented no ID (LeaseIdMissing)
	ErrNotPresent    // nobody holds the lease, so there is nothing to act on (LeaseNotPresentWith...Operation)
	ErrEnded         // the lease with the presented ID has ended (LeaseLost)
	ErrEpochLimit    // no newer token exists that could be issued for this name
	ErrForeign       // a program without this library holds the lease, and the request would end or change it

	// Bad arguments. A request with such an argument can never be granted.

	ErrAction   // unknown action
	ErrVersion  // unknown version, or a version without the action
	ErrID       // missing or malformed lease ID
	ErrProposed // missing proposed lease ID
	ErrDuration // lease duration that is not positive, or outside the limits
	ErrPeriod   // break period that is negative, or above the limit
	ErrOwner    // malformed owner: see [CheckOwner]
	ErrName     // malformed name: see [CheckName]
	ErrToken    // malformed fencing token: see [Token]
	ErrTime     // the authority's time is before the year 1
	ErrOption   // option of a constructor that is missing or out of range

	// Errors of stores.

	ErrConflict // Swap wrote nothing, because the record has changed since it was loaded
	ErrCorrupt  // the store holds something that is not a valid record
	ErrUnsent   // the request was not sent, or failed before it wrote, so it has certainly changed nothing; a retry can succeed

	// Errors of holders.

	ErrLost       // the lease was lost; errors.Is(err, ErrLost) is true for every [*LostError]
	ErrExpired    // no renewal was granted before the earliest possible end of the lease
	ErrStopWindow // the lease is about to end, and its work must stop before the end
	ErrTakenOver  // another process with the same owner has taken the lease over
	ErrNoProgress // the work did not report progress in time, so the holder does not renew the lease any more
	ErrReleased   // the holder itself ended the term, by Release, HandOver or Close
	ErrNotHeld    // the holder does not hold the lease
	ErrClosed     // the holder, the registry or the store was closed

	codes
)

var codeNames = [codes]string{
	ErrHeldByOther: "held", ErrBreaking: "breaking", ErrBroken: "broken", ErrAlreadyBroken: "already-broken",
	ErrIDMismatch: "id-mismatch", ErrIDMissing: "id-missing", ErrNotPresent: "not-present", ErrEnded: "ended",
	ErrEpochLimit: "epoch-limit", ErrForeign: "foreign",
	ErrAction: "action", ErrVersion: "version", ErrID: "id", ErrProposed: "proposed", ErrDuration: "duration",
	ErrPeriod: "period", ErrOwner: "owner", ErrName: "name", ErrToken: "token", ErrTime: "time", ErrOption: "option",
	ErrConflict: "conflict", ErrCorrupt: "corrupt", ErrUnsent: "unsent",
	ErrLost: "lost", ErrExpired: "expired", ErrStopWindow: "stop-window", ErrTakenOver: "taken-over",
	ErrNoProgress: "no-progress", ErrReleased: "released", ErrNotHeld: "not-held", ErrClosed: "closed",
}

var codeTexts = [codes]string{
	ErrHeldByOther:   "another holder has the lease",
	ErrBreaking:      "the lease is breaking",
	ErrBroken:        "the lease was broken",
	ErrAlreadyBroken: "the lease was already broken",
	ErrIDMismatch:    "the lease ID is not the one in force",
	ErrIDMissing:     "the lease is locked, and no lease ID was presented",
	ErrNotPresent:    "there is no lease",
	ErrEnded:         "the lease with this ID has ended",
	ErrEpochLimit:    "no newer fencing token can be issued",
	ErrForeign:       "a program that does not use this library holds the lease",
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
	ErrUnsent:        "the request was not sent",
	ErrExpired:       "the lease was not renewed in time",
	ErrLost:          "the lease was lost",
	ErrStopWindow:    "the lease is about to end",
	ErrTakenOver:     "another process with the same owner has taken the lease over",
	ErrNoProgress:    "the work made no progress",
	ErrReleased:      "the lease was released",
	ErrNotHeld:       "the lease is not held",
	ErrClosed:        "the Session or the store is closed",
}

// Refusal reports whether c means that a request was refused because of the state of the lease, and not
// because of a bad argument or an error of a store or a holder. Such a request does not change the lease,
// except that the authority may shorten a stored lease that exceeds its [Limits]. The authority can grant an
// equal request later.
func (c Code) Refusal() bool { return c >= ErrHeldByOther && c <= ErrForeign }

// Error returns a description of c in plain words.
func (c Code) Error() string {
	if c > 0 && c < codes {
		return codeTexts[c]
	}
	return c.String()
}

// String returns the short name of c, such as "held" or "id-mismatch".
func (c Code) String() string {
	if c > 0 && c < codes {
		return codeNames[c]
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}

// MarshalText returns the short name of c, or an error if c is not a known Code.
func (c Code) MarshalText() ([]byte, error) { return marshalName(codeNames[:], int(c), "code") }

// UnmarshalText sets *c to the Code with the given short name, or returns an error if there is no such Code.
func (c *Code) UnmarshalText(text []byte) error {
	i, err := unmarshalName(codeNames[:], text, "code")
	if err == nil {
		*c = Code(i)
	}
	return err
}

// CodeOf returns the first Code that [errors.As] finds in the tree of err, or 0 if there is none.
func CodeOf(err error) Code {
	if err == nil {
		return 0 // returns early to avoid an allocation
	}
	var c Code
	errors.As(err, &c)
	return c
}

// An OpError is the error that an [Authority] returns.
type OpError struct {
	Op   string // the action, such as "acquire"
	Name string // the name of the lease
	Err  error  // a Code if refused, a *FieldError for a bad argument; any other error means an unknown outcome
}

// Error returns a text with the action, the name of the lease and the text of Err.
func (e *OpError) Error() string {
	s := "lease: " + e.Op + " " + quote(e.Name)
	if e.Err == nil {
		return s
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// A FieldError reports a bad argument, or a bad field of a record.
type FieldError struct {
	Field string // the field, such as "Request.Duration", or the argument, such as "Name" or "Break.a"
	Value string // the value as text; a string is quoted
	Bound string // the rule that the value violates, such as "must be positive"
	Code  Code   // the code of the argument, or ErrCorrupt for a field of a record
}

// Error returns a text with the name of the field, its value and the bound.
func (e *FieldError) Error() string { return e.Field + " = " + e.Value + ": " + e.Bound }

// Unwrap returns the Code.
func (e *FieldError) Unwrap() error { return e.Code }

// The error for an argument that must not be nil is missing(argument). For example, Break returns
// missing("Break.a") if its Authority is nil.
func missing(argument string) error {
	return &FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: ErrOption}
}

// A LostError says that a holder lost its lease. The handlers that were registered with [Lease].OnLost
// receive a LostError. If a loss ends a context that [WhileHeld] has returned, the [context.Cause] of that
// context is a LostError.
//
// If the lease was broken and the holder has learned of the break, errors.Is(err, ErrBroken) is true, even if
// the Reason is [ErrStopWindow]. In two cases, the holder does not learn of a break:
//
//   - Another holder acquired the lease after the break and before the next renewal of the old holder, so
//     that the record no longer shows the break. The Reason is then [ErrIDMismatch], or [ErrTakenOver] if
//     both holders have the same owner. The Reason is also ErrIDMismatch if the record was deleted.
//   - Every renewal after the break failed, for example because the authority did not answer. The Reason is
//     then ErrStopWindow or [ErrExpired].
type LostError struct {
	Name   string // the name of the lease; may be empty in a test
	Token  Token  // the token of the term that was lost
	Reason Code   // ErrExpired, ErrBroken, ErrStopWindow, ErrTakenOver, ErrNoProgress, or the refusal of a renewal, such as ErrIDMismatch
	Err    error  // the last error before the loss; may be nil
}

// The method Is makes errors.Is(err, ErrLost) return true for every LostError. For a LostError, [CodeOf]
// returns the Reason.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Error returns a text with the name of the lease, the reason and the text of Err.
func (e *LostError) Error() string {
	verb := "lost"
	if e.Reason == ErrStopWindow {
		verb = "must stop" // the lease is still held
	}
	if e.Name != "" {
		verb += " " + quote(e.Name)
	}
	s := "lease: " + verb + ": " + e.Reason.Error()
	var op *OpError
	if e.Err != nil && !(errors.As(e.Err, &op) && op.Err == error(e.Reason)) { // so that the text of the Code is not written twice
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the Reason, and Err if it is not nil.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// A PermanentError, which [Permanent] returns, is an error of a store or an authority that a retry cannot
// fix, such as a missing table or a missing permission.
type PermanentError struct {
	Err error // the error itself
}

// Permanent marks err as an error that a retry cannot fix. Permanent wraps err in a [*PermanentError] with
// the same text, or returns nil if err is nil. To find out whether an error is marked, call errors.As.
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

// quote returns s in quotes for an error message, and shortens it to 80 bytes.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// maxLabel is the largest size of a name or an owner, in bytes.
const maxLabel = 1024

const labelBound = "must be valid UTF-8 of 1 to 1024 bytes without NUL"

// CheckName returns nil if name is a valid name of a lease, which is UTF-8 text of 1 to 1024 bytes without
// NUL. Otherwise CheckName returns a [*FieldError] with the Code [ErrName].
func CheckName(name string) error { return labelError("Name", name, ErrName) }

// CheckOwner returns nil if owner is a valid owner, by the same rules as [CheckName]. Otherwise CheckOwner
// returns a [*FieldError] with the Code [ErrOwner].
func CheckOwner(owner string) error { return labelError("Owner", owner, ErrOwner) }

func labelError(field, s string, code Code) error {
	if checkLabel(s, code) == 0 {
		return nil
	}
	return &FieldError{Field: field, Value: quote(s), Bound: labelBound, Code: code}
}

func checkLabel(s string, bad Code) Code {
	if s == "" || len(s) > maxLabel {
		return bad
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == 0:
			return bad
		case c >= utf8.RuneSelf: // not ASCII: check the rest in the slower way
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
