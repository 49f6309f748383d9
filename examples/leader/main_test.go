package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
)

// A service is a guarded one, which notes the token of each request that it admits.
type service struct {
	*httptest.Server
	tokens chan lease.Token
}

func newService(t *testing.T, guard *fencing.Guard) *service {
	s := &service{tokens: make(chan lease.Token, 100)}
	h, err := fencing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tok, err := fencing.DefaultHeader.Token(r.Header)
		if err != nil {
			t.Error(err)
		}
		s.tokens <- tok
	}), &fencing.Options{Guard: func(*http.Request) (*fencing.Guard, error) { return guard, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// Of two machines one works, and when it has stopped the other works, with a newer token.
func TestOneAfterTheOther(t *testing.T) {
	s := newService(t, new(fencing.Guard))
	store := memory.New(nil)
	ended := make(chan error, 2)
	start := func() context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- run(ctx, store, s.URL) }()
		return stop
	}
	stopFirst := start()
	if tok := <-s.tokens; tok != lease.TokenOf(1) {
		t.Errorf("the first leads with token %s", tok)
	}
	stopSecond := start()
	stopFirst()
	for tok := range s.tokens { // the first may have sent one more
		if tok == lease.TokenOf(2) {
			break
		}
	}
	stopSecond()
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A leader that the service refuses ends with that error.
func TestRefused(t *testing.T) {
	guard := new(fencing.Guard)
	s := newService(t, guard)
	if err := guard.Advance(lease.TokenOf(2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := run(ctx, memory.New(nil), s.URL)
	if want := "fencing: stale token 00000000000000000001: 00000000000000000002 has been seen"; err == nil || err.Error() != want {
		t.Errorf("it ended with %v, want %s", err, want)
	}
	if n := len(s.tokens); n > 0 {
		t.Errorf("the service admitted %d requests", n)
	}
}
