package fencing

import (
	"net/http"

	"github.com/fencedlease/lease"
)

// A Transport is an [http.RoundTripper] that shows a token with every request.
//
// A Transport, and the requests sent through it, belong to one incarnation of a lease: make
// another one after the next grant. That is why it holds a token and not a way to look one
// up: a request that was prepared under an older incarnation, and sent with the token of a
// newer one, is what a guard exists to refuse and could not recognise.
type Transport struct {
	Token  lease.Token       // shown with every request; malformed: nothing is sent
	Header Header            // which carries it; empty: DefaultHeader
	Base   http.RoundTripper // which sends the requests; nil: http.DefaultTransport
}

// RoundTrip sends a copy of r that carries the token. An answer that refuses the token is
// an answer, not an error: see [Header.Check].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r == nil {
		return nil, missing("Transport.RoundTrip.r")
	}
	shown := r.Clone(r.Context())
	if shown.Header == nil {
		shown.Header = make(http.Header)
	}
	if err := t.Header.Set(shown.Header, t.Token); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(shown)
}
