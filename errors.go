package lease

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Code says why an authority refused a request, why a holder lost a lease, or what is wrong with an
// argument. It is an error, and a target for [errors.Is]. [CodeOf] finds the Code of an error, for a
// switch or as the key of a table. The comment of each refusal names the error code of the Blob
// service.
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
	ErrForeign       // a program that does not use this library holds the lease, and the request would end or change that

	// Bad arguments: the request can never be granted.

	ErrAction   // unknown action
	ErrVersion  // unknown version, or a version that does not have the action
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

	ErrConflict // Swap: the record is no longer the one that was loaded; certainly not written
	ErrCorrupt  // the store holds something that is not a valid record

	// Errors of holders.

	ErrLost       // the lease was lost; errors.Is reports true for every [*LostError], whatever its Reason
	ErrExpired    // no renewal was granted before the holder's lower bound of the time left ran out
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
	ErrEpochLimit: "epoch-limit", ErrForeign: "foreign",
	ErrAction: "action", ErrVersion: "version", ErrID: "id", ErrProposed: "proposed", ErrDuration: "duration",
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

// Refusal reports whether c is a refusal: the state of the lease decided, and the request changed
// nothing. The same request may be granted later. Refusal is false for bad arguments and for the
// errors of stores and holders.
func (c Code) Refusal() bool { return c >= ErrHeldByOther && c <= ErrForeign }

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

// An OpError is the error of an [Authority]. It says which operation failed on which lease, and why.
type OpError struct {
	Op   string // the action, such as "acquire"
	Name string // the name of the lease
	Err  error  // a Code for a refusal, a *FieldError for a bad argument; with any other error the outcome is unknown
}

// Error returns the operation, the name and the text of Err.
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
	Value string // the value as text; a text is quoted
	Bound string // the bound that the value breaks, such as "must be positive"
	Code  Code   // the code of the argument, or ErrCorrupt for a field of a record
}

// Error returns the field, the value and the bound.
func (e *FieldError) Error() string { return e.Field + " = " + e.Value + ": " + e.Bound }

// Unwrap returns the Code.
func (e *FieldError) Unwrap() error { return e.Code }

// Missing returns the error of an argument that must be given and is nil: a [*FieldError] with the Code
// [ErrOption]. The argument is named after its function, such as "Break.a".
func Missing(argument string) error {
	return &FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: ErrOption}
}

// A LostError says that a holder lost its lease. Handlers of [Lease.OnLost] get it, and it is the
// cause of a context from [WhileHeld] that ended with the loss.
type LostError struct {
	Name   string // the name of the lease
	Token  Token  // the token of the incarnation that was lost
	Reason Code   // ErrExpired, ErrBroken, ErrStopWindow, or the refusal of a renewal
	Err    error  // the last error before the loss; may be nil
}

// Is reports whether target is [ErrLost], so that errors.Is(err, ErrLost) is true of every loss.
// [CodeOf] a LostError is its Reason.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Error returns the name, the reason and the text of Err.
func (e *LostError) Error() string {
	s := "lease: lost " + quote(e.Name) + ": " + e.Reason.Error()
	if e.Err != nil && CodeOf(e.Err) != e.Reason { // or the text would be there twice
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
	Err error // the error itself
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

// quote quotes a value for a message, and cuts a long one.
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
