package fencing

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/fencedlease/lease"
)

// Options are the options of a [Handler]. Nil Options mean the defaults. If a field is zero, its
// default is used.
type Options struct {
	// Header is the header that carries the token. Default: DefaultHeader.
	Header Header

	// The function Guard returns the guard of the resource to which the request writes.
	// [Guards.For] returns a function that can be used as Guard. The handler calls the function
	// Guard only if the token of the request is well-formed. Several goroutines may call the
	// function at once. If the function Guard returns an error, the handler passes the error to
	// [Header.Refuse] to answer the request. Default: one new Guard for all requests.
	Guard func(*http.Request) (*Guard, error)

	// MaxBody is the largest size of a request body, in bytes. The whole body is read before the
	// request enters the guard. A client that stops in the middle of sending a body therefore does
	// not block other requests. If MaxBody is negative, a body may have any size and is not read in
	// advance. If MaxBody is negative, also set a read timeout in the server. Default: 1 MiB.
	MaxBody int64
}

// Handler returns a handler that calls next.ServeHTTP if the guard admits the token of the request.
// [Header.Refuse] answers every other request. If next is nil, or if [Header.Validate] refuses the
// Header, Handler returns a [*lease.FieldError] with the code [lease.ErrOption].
//
// Put the handler behind authentication. The handler refuses malformed tokens, but a client can
// invent a well-formed token. The handler does not check whether an authority has issued the token.
//
// While next.ServeHTTP runs, the guard admits no other request, because next.ServeHTTP can write
// until it returns. Only one request of an earlier holder can therefore delay a new holder: the
// request that is already running. If the context of a request ends while the request waits for the
// guard, the handler refuses the request. If next.ServeHTTP panics, the handler releases the guard,
// but does not lower the mark.
//
// The handler does not buffer answers, so a client that does not read its answer can block the
// guard. To prevent a client from blocking the guard, set a write timeout in the server.
//
// Also use the handler for requests that only read, so that the first read of a new holder advances
// the guard.
func Handler(next http.Handler, o *Options) (http.Handler, error) {
	if f, isFunc := next.(http.HandlerFunc); next == nil || isFunc && f == nil {
		return nil, lease.Missing("Handler.next")
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

// ServeHTTP implements [http.Handler].
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

// errNoGuard is the error that the handler passes to [Header.Refuse] if Options.Guard returns
// neither a guard nor an error.
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
	r = r.WithContext(r.Context()) // a copy: a handler must not change its request
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// A bodyError reports that the body of a request could not be read.
type bodyError struct{ err error }

// Error returns the text of the read error, with a prefix.
func (e *bodyError) Error() string { return "fencing: cannot read the body: " + e.err.Error() }

// Unwrap returns the read error.
func (e *bodyError) Unwrap() error { return e.err }
