package fencing_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// If an argument is nil, the error names the argument, and nothing changes.
func TestNilArguments(t *testing.T) {
	var g fencing.Guard
	_, sent := (&fencing.Transport{Token: tok(7)}).RoundTrip(nil)
	for argument, err := range map[string]error{
		"Guard.Do.f":            g.Do(tok(7), nil),
		"Advance.m":             fencing.Advance(t.Context(), nil, tok(7)),
		"Header.Set.to":         fencing.DefaultHeader.Set(nil, tok(7)),
		"Header.Check.resp":     fencing.DefaultHeader.Check(nil),
		"Transport.RoundTrip.r": sent,
	} {
		var field *lease.FieldError
		if !errors.As(err, &field) || *field != (lease.FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: lease.ErrOption}) {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if g.Seen() != "" {
		t.Errorf("Seen() = %q after Do without a function, want none", g.Seen())
	}
	if _, err := fencing.DefaultHeader.Token(http.Header(nil)); lease.CodeOf(err) != lease.ErrToken {
		t.Errorf("Token of no headers: %v, want ErrToken", err)
	}
	defer func() {
		if got := recover(); got != "fencing: Guards.For: the key must not be nil" {
			t.Errorf("For panics with %v", got)
		}
	}()
	new(fencing.Guards).For(nil)
}
