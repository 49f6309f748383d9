package fencing

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/fencedlease/lease"
)

// Options are the options of a [Handler]. Nil stands for the zero Options, and every zero
// field for the default it states.
type Options struct {
	// Header carries the token. Default: DefaultHeader.
	Header Header

	// Guard returns the guard of the resource that a request concerns; [Guards.For] makes
	// one of a function that names the resource. It is called for requests with a
	// well-formed token only, and an error of it is answered as by [Header.Refuse].
	// Default: one new Guard for all requests.
	Guard func(*http.Request) (*Guard, error)

	// MaxBody is the largest body of a request, in bytes. A body is read whole before the
	// guard is entered, so that a holder that stops in the middle of sending one keeps
	// nobody waiting. Below 0 it is not read ahead and not limited; then have a read
	// time-out in the server. Default: 1 MiB.
	MaxBody int64
}

// Handler returns a handler that lets a request through to next if it shows a token that is
// not older than any that its guard was shown before. Every other request is answered as
// by [Header.Refuse], and next does not see it. A next that is nil, or a nil function, and a
// Header that is not one, are a [*lease.FieldError].
//
// It is for callers that were authenticated: it refuses malformed tokens, so garbage cannot
// raise the mark, but nothing distinguishes a forged token that is well-formed from one
// that an authority issued.
//
// The guard is held until next returns, because that is when its write is over: requests
// for one resource run one at a time, and a new holder waits for at most the one that is
// running. A request whose context ends in the wait is not let through. Answers are not
// buffered, so have a write time-out in the server against callers that do not read
// theirs. A next that panics leaves the guard free, with its mark raised.
//
// Guard reads as well as writes: the first read of a new holder is then its Advance.
func Handler(next http.Handler, o *Options) (http.Handler, error) {
	if f, isFunc := next.(http.HandlerFunc); next == nil || isFunc && f == nil {
		return nil, missing("Handler.next")
	}
	h := &handler{next: next}
	if o != nil {
		h.o = *o
	}
	if bad := (*lease.FieldError)(nil); errors.As(h.o.Header.Validate(), &bad) {
		bad.Field = "Options.Header"
		return nil, bad
	}
	if h.o.Guard == nil {
		g := new(Guard)
		h.o.Guard = func(*http.Request) (*Guard, error) { return g, nil }
	}
	if h.o.MaxBody == 0 {
		h.o.MaxBody = 1 << 20
	}
	return h, nil
}

type handler struct {
	next http.Handler
	o    Options
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		h.o.Header.Refuse(w, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	tok, err := h.o.Header.Token(r.Header)
	if err != nil {
		return err
	}
	g, err := h.o.Guard(r)
	if err != nil {
		return err
	}
	if g == nil {
		return errNoGuard
	}
	if h.o.MaxBody > 0 {
		if r, err = readAhead(w, r, h.o.MaxBody); err != nil {
			return err
		}
	}
	return g.DoContext(r.Context(), tok, func() error {
		h.next.ServeHTTP(w, r)
		return nil
	})
}

// errNoGuard refuses a request for which Options.Guard returned neither a guard nor an error.
var errNoGuard = errors.New("fencing: no guard for the request")

// readAhead returns r with its body in memory.
func readAhead(w http.ResponseWriter, r *http.Request, most int64) (*http.Request, error) {
	if r.Body == nil {
		return r, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, &bodyError{err}
	}
	r = r.WithContext(r.Context()) // a copy: the request itself must stay as it is
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// A bodyError is the failure to read the body of a request.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "fencing: reading the body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }
