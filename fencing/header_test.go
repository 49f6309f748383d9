package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Every kind of refusal has its answer, also when it comes wrapped.
//
// SPEC G5.
func TestRefuseTable(t *testing.T) {
	stale := &fencing.StaleError{Shown: tok(1), Seen: tok(2)}
	for _, c := range []struct {
		err    error
		status int
		seen   lease.Token
	}{
		{stale, 412, tok(2)},
		{lease.Token("x").Valid(), 400, ""},
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
