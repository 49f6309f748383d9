package fencing_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Over a real connection, the server admits the newer client, and tells the older one why it is refused.
func TestTransportAndHandlerOverAConnection(t *testing.T) {
	for _, header := range []fencing.Header{"", "X-Term"} {
		var wrote []string
		h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			wrote = append(wrote, string(body))
		}, &fencing.Options{Header: header})
		server := httptest.NewServer(h)
		put := func(shown lease.Token, body string) (*http.Response, error) {
			client := &http.Client{Transport: &fencing.Transport{Token: shown, Header: header}}
			r, err := http.NewRequest("PUT", server.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			if len(r.Header) != 0 {
				t.Errorf("the caller's request was changed: %v", r.Header)
			}
			return resp, header.Check(resp)
		}
		if _, err := put(tok(2), "newer"); err != nil {
			t.Error(err)
		}
		_, err := put(tok(1), "older")
		var stale *fencing.StaleError
		if !errors.As(err, &stale) || *stale != (fencing.StaleError{Shown: tok(1), Seen: tok(2)}) {
			t.Errorf("err = %v, want shown 1, seen 2", err)
		}
		if _, err := put("", "none"); lease.CodeOf(err) != lease.ErrToken {
			t.Errorf("without a token: %v, want ErrToken", err)
		}
		server.CloseClientConnections()
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if len(wrote) != 1 || wrote[0] != "newer" {
			t.Errorf("written: %q", wrote)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Transport does not send a malformed token, and closes the body of the request.
func TestTransportSendsNoMalformedToken(t *testing.T) {
	for _, bad := range malformed {
		tr := &fencing.Transport{Token: bad, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			t.Errorf("%q was sent", bad)
			return nil, http.ErrNotSupported
		})}
		closed := false
		for _, body := range []io.ReadCloser{nil, closer(func() { closed = true })} {
			if _, err := tr.RoundTrip(&http.Request{Method: "GET", Body: body}); lease.CodeOf(err) != lease.ErrToken {
				t.Errorf("%q: %v, want ErrToken", bad, err)
			}
		}
		if !closed {
			t.Errorf("%q: the body was not closed", bad)
		}
	}
}

type closer func()

func (f closer) Read([]byte) (int, error) { return 0, io.EOF }
func (f closer) Close() error             { f(); return nil }

// A Transport replaces a token that the caller has set by its own token.
func TestTransportReplacesTheHeader(t *testing.T) {
	tr := &fencing.Transport{Token: tok(7), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Values("Fencing-Token"); len(got) != 1 || got[0] != string(tok(7)) {
			t.Errorf("sent %q", got)
		}
		return nil, http.ErrNotSupported
	})}
	for _, header := range []http.Header{nil, {"Fencing-Token": {string(tok(8)), "x"}}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header = header
		if _, err := tr.RoundTrip(r); err != http.ErrNotSupported {
			t.Errorf("err = %v, want the base's", err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		seen   string
		stale  bool
	}{
		{"stale", 412, string(tok(7)), true},
		{"another precondition", 412, "", false},
		{"not a mark", 412, "zzzzzzzzzzzzzzzzzzzz", false},
		{"another status", 409, string(tok(7)), false},
		{"fine", 200, "", false},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(new(bytes.Buffer))}
		resp.Header.Set("Fencing-Token-Seen", c.seen)
		err := fencing.DefaultHeader.Check(resp)
		if (err != nil) != c.stale || c.stale && *err.(*fencing.StaleError) != (fencing.StaleError{Seen: tok(7)}) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
