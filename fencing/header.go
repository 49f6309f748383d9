package fencing

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
)

// A Header is the name of the HTTP header that carries a fencing token. The empty Header
// stands for [DefaultHeader].
//
// A request carries the token in this header, as it stands, exactly once. An answer that
// refuses it as stale carries the mark in a header of the same name followed by "-Seen".
type Header string

// DefaultHeader is the header that carries a token unless another is chosen.
const DefaultHeader Header = "Fencing-Token"

func (h Header) name() string {
	if h == "" {
		h = DefaultHeader
	}
	return string(h)
}

func (h Header) seen() string { return h.name() + "-Seen" }

// reserved are the headers that net/http takes for itself, in canonical form: in HTTP/1.1 or
// HTTP/2 they do not arrive at the handler as they were set.
var reserved = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// Validate returns nil if the Header is empty or a name that HTTP allows and net/http passes on,
// and otherwise a [*lease.FieldError] with the code [lease.ErrOption].
func (h Header) Validate() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	bound := ""
	switch {
	case strings.Trim(string(h), letters) != "":
		bound = "must be the name of an HTTP header"
	case reserved[http.CanonicalHeaderKey(string(h))]:
		bound = "must be none that is about the connection or the framing of the message"
	default:
		return nil
	}
	return &lease.FieldError{Field: "Header", Value: strconv.Quote(string(h)), Bound: bound, Code: lease.ErrOption}
}

// Token reads the token of a request. No header, more than one, and one that is not a
// well-formed token give a [*lease.FieldError] with the code [lease.ErrToken].
func (h Header) Token(from http.Header) (lease.Token, error) {
	values := from.Values(h.name())
	if len(values) != 1 {
		return "", &lease.FieldError{
			Field: "Header " + h.name(), Value: strconv.Itoa(len(values)) + " values",
			Bound: "must be given exactly once", Code: lease.ErrToken,
		}
	}
	tok := lease.Token(values[0])
	return tok, tok.Validate()
}

// Set writes a token into the header of a request, instead of any that is there. An
// empty or malformed token, a Header that [Header.Validate] refuses, and nil to write into, is an
// error, and changes nothing.
func (h Header) Set(to http.Header, tok lease.Token) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if err := tok.Validate(); err != nil {
		return err
	}
	if to == nil {
		return missing("Header.Set.to")
	}
	to.Set(h.name(), string(tok))
	return nil
}

// Refuse answers a request whose token was not admitted, with a text that says why:
//
//   - 412 Precondition Failed for a [*StaleError], with the mark in the "-Seen" header. (Not
//     409 Conflict: that invites the caller to resolve the conflict and try again, which a
//     holder that lost its lease must not.)
//   - 400 Bad Request for a missing, repeated or malformed token or name.
//   - 413 Content Too Large for a body beyond its limit, and 400 for one that broke off.
//   - 503 Service Unavailable if the guards are full, or the context ended during a wait.
//   - 500 Internal Server Error for any other error, whose text is not shown.
func (h Header) Refuse(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, ""
	var stale *StaleError
	var large *http.MaxBytesError
	var body *bodyError
	switch code := lease.CodeOf(err); {
	case errors.As(err, &stale):
		w.Header().Set(h.seen(), string(stale.Seen))
		status, text = http.StatusPreconditionFailed, err.Error()
	case errors.As(err, &large):
		status, text = http.StatusRequestEntityTooLarge, err.Error()
	case code == lease.ErrToken, code == lease.ErrName, errors.As(err, &body):
		status, text = http.StatusBadRequest, err.Error()
	case errors.Is(err, ErrFull), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		status, text = http.StatusServiceUnavailable, err.Error()
	default:
		text = http.StatusText(status)
	}
	http.Error(w, text, status)
}

// Check returns the [*StaleError] that an answer of Refuse stands for, and nil for any
// other answer. It does not read the body. No answer at all, a nil one, is a
// [*lease.FieldError]: it says nothing about the token.
func (h Header) Check(resp *http.Response) error {
	if resp == nil {
		return missing("Header.Check.resp")
	}
	seen := lease.Token(resp.Header.Get(h.seen()))
	if resp.StatusCode != http.StatusPreconditionFailed || seen.Validate() != nil {
		return nil
	}
	stale := &StaleError{Seen: seen}
	if resp.Request != nil {
		stale.Shown = lease.Token(resp.Request.Header.Get(h.name()))
	}
	return stale
}
