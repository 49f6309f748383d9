package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Refuse has an answer for every kind of error, even if it is wrapped. SPEC G5.
func TestRefuseTable(t *testing.T) {
	stale := &fencing.StaleError{Shown: tok(1), Seen: tok(2)}
	for _, c := range []struct {
		err    error
		status int
		seen   lease.Token
	}{
		{stale, 412, tok(2)},
		{lease.Token("x").Validate(), 400, ""},
		{lease.CheckName(""), 400, ""},
		{&http.MaxBytesError{Limit: 1}, 413, ""},
		{fencing.ErrFull, 503, ""},
		{context.Canceled, 503, ""},
		{context.DeadlineExceeded, 503, ""},
		{&lease.FieldError{Field: "Mark", Code: lease.ErrCorrupt}, 500, ""},
		{errWrite, 500, ""},
		{nil, 500, ""},
	} {
		for _, err := range []error{c.err, wrap(c.err)} {
			w := httptest.NewRecorder()
			fencing.Header("X-Term").Refuse(w, err)
			resp := w.Result()
			if resp.StatusCode != c.status || resp.Header.Get("X-Term-Seen") != string(c.seen) {
				t.Errorf("%v: %s, seen %q; want %d, %q", err, resp.Status, resp.Header.Get("X-Term-Seen"), c.status, c.seen)
			}
			want := "Internal Server Error"
			if c.status != 500 {
				want = err.Error()
			}
			if got := text(t, resp); got != want {
				t.Errorf("%v: says %q, want %q", err, got, want)
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %w", errors.Join(err))
}

func TestSetRefusesMalformedTokens(t *testing.T) {
	for _, bad := range malformed {
		h := http.Header{"Fencing-Token": {string(tok(7))}}
		if err := fencing.DefaultHeader.Set(h, bad); lease.CodeOf(err) != lease.ErrToken || h.Get("Fencing-Token") != string(tok(7)) {
			t.Errorf("Set(%q) = %v, %v", bad, err, h)
		}
	}
}

func TestSetRefusesHeaders(t *testing.T) {
	for _, bad := range []fencing.Header{"a b", "Host", "transfer-encoding"} {
		h := http.Header{}
		err := bad.Set(h, tok(7))
		var field *lease.FieldError
		isOption := errors.As(err, &field) && field.Field == "Header" && field.Code == lease.ErrOption
		if !isOption || field.Value != strconv.Quote(string(bad)) {
			t.Errorf("Set(%q) = %v", bad, err)
		}
		if len(h) > 0 {
			t.Errorf("Set(%q) was refused, and set %v", bad, h)
		}
	}
}

// If a Header is valid, the handler gets it, over HTTP/1.1 and HTTP/2.
func TestHeadersThatArrive(t *testing.T) {
	names := strings.Fields("Connection Content-Length Expect Host Keep-Alive Proxy-Connection TE Trailer Transfer-Encoding Upgrade " +
		"Fencing-Token Accept Accept-Encoding Authorization Content-Encoding Content-Range Content-Type Cookie Date Forwarded From " +
		"HTTP2-Settings If-Match Location Max-Forwards Origin Proxy-Authorization Range Referer Server User-Agent Via X-Term")
	arrives := map[string]int{}
	for _, version := range []int{1, 2} {
		var got []string
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r.Header.Values(r.Header.Get("Which"))
			if r.ProtoMajor != version {
				t.Errorf("version %d", r.ProtoMajor)
			}
		}))
		if server.EnableHTTP2 = version == 2; server.EnableHTTP2 {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		for _, name := range names {
			got = nil
			r, err := http.NewRequest("PUT", server.URL, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Which", name)
			r.Header.Set(name, string(tok(7)))
			resp, err := server.Client().Do(r)
			if err != nil {
				continue // the client refuses some headers
			}
			resp.Body.Close()
			if len(got) == 1 && got[0] == string(tok(7)) {
				arrives[name]++
			}
		}
	}
	for _, name := range names {
		if err := fencing.Header(name).Validate(); (err == nil) != (arrives[name] == 2) {
			t.Errorf("%s: arrives with %d versions, and is refused so: %v", name, arrives[name], err)
		}
	}
}
