package fencing

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Header is the name of the HTTP header that carries a fencing token. An empty Header means
// [DefaultHeader].
//
// A request must contain the header exactly once, with the token as its value. An answer that refuses a stale
// token has a header whose name has the suffix "-Seen", for example Fencing-Token-Seen. The value of this
// header is the newest token that the resource has seen.
type Header string

// DefaultHeader is the header that carries the token if no other [Header] is specified.
const DefaultHeader Header = "Fencing-Token"

func (h Header) name() string {
	if h == "" {
		h = DefaultHeader
	}
	return string(h)
}

func (h Header) seen() string { return h.name() + "-Seen" }

// reserved contains the canonical names of the headers that net/http handles itself, some of them only in
// HTTP/1.1 or only in HTTP/2. A handler does not get the value that a client sends in such a header.
var reserved = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// Validate checks that h is empty or a valid name of an HTTP header, and that net/http passes headers with
// this name to handlers. Otherwise Validate returns a [*lease.FieldError] with the code [lease.ErrOption].
func (h Header) Validate() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	bound := ""
	switch {
	case strings.Trim(string(h), letters) != "":
		bound = "must be the name of an HTTP header"
	case reserved[http.CanonicalHeaderKey(string(h))]:
		bound = "must not be a header of the connection or of the framing of the message"
	default:
		return nil
	}
	return &lease.FieldError{Field: "Header", Value: strconv.Quote(string(h)), Bound: bound, Code: lease.ErrOption}
}

// Token returns the token in the headers of a request. If the header h does not occur exactly once, or its
// value is malformed, Token returns a [*lease.FieldError] with the code [lease.ErrToken].
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

// Set puts the token into the headers of a request, in place of any earlier token. Set returns a
// [*lease.FieldError], and changes no headers, in three cases: the token is empty or malformed, the map of
// headers is nil, or [Header.Validate] rejects the Header.
func (h Header) Set(to http.Header, tok lease.Token) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if err := tok.Validate(); err != nil {
		return err
	}
	if to == nil {
		return fields.Missing("Header.Set.to")
	}
	to.Set(h.name(), string(tok))
	return nil
}

// Refuse writes the answer to a request that was rejected because of the error err. The body of the answer is
// the text of err, unless the status is 500. The status is
//
//   - 412 Precondition Failed for a [*StaleError], with the mark in the "-Seen" header. The status 409
//     Conflict would invite the client to try again, which a holder that has lost its lease must not do.
//   - 400 Bad Request for a missing, repeated or malformed token or name.
//   - 413 Content Too Large for a body above the limit, and 400 if the body cannot be read to its end.
//   - 503 Service Unavailable for [ErrFull], and if the context has ended.
//   - 500 Internal Server Error for any other error.
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

// Check returns a [*StaleError] if resp is an answer that [Header.Refuse] has written because of a stale
// token, and nil for any other answer. Check does not read the body. If resp is nil, Check returns a
// [*lease.FieldError] with the code [lease.ErrOption].
func (h Header) Check(resp *http.Response) error {
	if resp == nil {
		return fields.Missing("Header.Check.resp")
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
