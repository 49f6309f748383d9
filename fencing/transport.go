package fencing

import (
	"net/http"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Transport is an [http.RoundTripper] that adds a token to every request. A Transport is safe for
// concurrent use if its field Base contains a RoundTripper that is safe for concurrent use.
//
// A Transport belongs to one term of a lease. After the next grant, make another Transport, and do not set
// the newer token in the old Transport. Otherwise a request that was prepared in the earlier term would carry
// the newest token, and the resource would accept it.
type Transport struct {
	Token  lease.Token       // the token of every request; if it is malformed, no request is sent
	Header Header            // the header of the token; if empty, DefaultHeader
	Base   http.RoundTripper // sends the requests; if nil, http.DefaultTransport
}

// RoundTrip sends a copy of r with the token. If the server refuses the token, RoundTrip returns the answer
// and no error: use [Header.Check] to detect this. If [Header.Set] returns an error, RoundTrip returns that
// error and sends no request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r == nil {
		return nil, fields.Missing("Transport.RoundTrip.r")
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
