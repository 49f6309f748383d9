package fencing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// Options configure a [Handler]. A nil *Options means the defaults. If a field is zero, its default is used.
type Options struct {
	// Header is the header that carries the token. Default: DefaultHeader.
	Header Header

	// Guard returns the guard of the resource to which the request writes. For example, [Guards.For] returns
	// such a function. The handler calls Guard only for a request with a well-formed token. Several
	// goroutines can call Guard at the same time. If Guard returns an error, the handler answers the request
	// with [Header.Refuse].
	//
	// Default: one new Guard for all requests. With this default, only the holders of one lease may use the
	// handler, because tokens of different leases cannot be compared. The mark is lost when the process
	// exits.
	Guard func(*http.Request) (*Guard, error)

	// MaxBody is the largest size of a request body, in bytes. The whole body is read before the request
	// enters the guard, so that a client that stops in the middle of a body does not block other requests. If
	// MaxBody is negative, a body may have any size and is not read in advance. In this case, also set a read
	// timeout in the server. Default: 1 MiB.
	MaxBody int64
}

// Handler returns an outer handler that wraps an inner handler, the parameter next. If the guard accepts the
// token of a request, the outer handler passes the request on to the inner handler, which gets the token from
// [TokenFromContext]. [Header.Refuse] answers every other request. If the parameter next is nil, or
// [Header.Validate] rejects the Header, Handler returns a [*lease.FieldError] with the code
// [lease.ErrOption].
//
// With nil Options, one new Guard serves all requests. Then only the holders of one lease may send requests,
// because the newer tokens of a second lease would lock out the holders of the first. If the requests write
// to resources of several leases, set [Options].Guard, for example to [Guards.For].
//
// A Guard has its mark only in memory. So after a restart, a new Guard accepts an earlier holder, until the
// current holder sends its next request. There are two ways to store the mark with the data:
//
//   - In a database, the inner handler calls [Advance] with the token in the transaction that writes the
//     data. The [Mark] in the database rejects an earlier holder even after a restart. This also works if
//     several servers share the database.
//   - In a single server, the inner handler stores the token in one step with the data. After a restart, the
//     server passes the stored token to [NewGuard], and Options.Guard returns this Guard, as in the example
//     of TokenFromContext.
//
// In both cases, the inner handler must store the token even if a request only reads, and must do so before
// it answers this request. Otherwise, an older holder could write after a restart, although the current
// holder has already read the data. So use the outer handler for reads, too.
//
// Put the outer handler behind authentication, because a client could invent a token: the outer handler
// rejects malformed tokens, but cannot check whether an authority has issued a token.
//
// While the inner handler runs, the guard accepts no other request. So a new holder waits for at most one
// request of an earlier holder: the request that is already running. If the context of a request ends while
// the request waits for the guard, the outer handler refuses the request. If the inner handler panics, the
// outer handler releases the guard, but does not lower the mark. The outer handler does not buffer answers,
// so a client that does not read its answer can block the guard. To prevent this, set a write timeout in the
// server.
func Handler(next http.Handler, o *Options) (http.Handler, error) {
	if f, isFunc := next.(http.HandlerFunc); next == nil || isFunc && f == nil {
		return nil, fields.Missing("Handler.next")
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
		if r.Trailer == nil {
			r.Trailer = http.Header{} // shared with the copy, so that the server can add trailers to both
		}
		admitted := r.WithContext(context.WithValue(r.Context(), tokenKey{}, tok))
		defer removeForm(admitted, r)
		h.next.ServeHTTP(w, admitted)
		return nil
	})
}

// removeForm removes the temporary files of a form that the wrapped handler has parsed. The server removes
// only the files of the original request, and not those of the copy that the wrapped handler gets.
func removeForm(admitted, original *http.Request) {
	if form := admitted.MultipartForm; form != nil && form != original.MultipartForm {
		_ = form.RemoveAll() // the server ignores this error too
	}
}

type tokenKey struct{}

// TokenFromContext returns the token of a request that a [Handler] has accepted. The argument ctx must be the
// context of the request that the wrapped handler gets, or a context that is derived from this context. For
// any other context, TokenFromContext returns the empty Token and false. If one Handler wraps another,
// TokenFromContext returns the token that the inner Handler has accepted.
func TokenFromContext(ctx context.Context) (lease.Token, bool) {
	tok, ok := ctx.Value(tokenKey{}).(lease.Token)
	return tok, ok
}

// errNoGuard is passed to [Header.Refuse] if Options.Guard returns neither a guard nor an error.
var errNoGuard = errors.New("fencing: no guard for the request")

// readAhead returns a copy of r with its whole body in memory.
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
