package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/open"
)

// Open opens the store of a URL with [open.Store], and closes it at the end of the test.
func Open(t testing.TB, url string) Store {
	t.Helper()
	leases, err := openURL(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leases.Close() })
	s, ok := leases.(Store)
	if !ok {
		t.Fatalf("enginetest: the store of %s has no methods Load and Swap", url)
	}
	return s
}

// openURL opens the store of a URL. It retries for up to a minute, because the server may be down.
func openURL(url string) (open.Leases, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		s, err := open.Store(ctx, url)
		if err == nil || ctx.Err() != nil || shorthand.Permanent(err) || errors.As(err, new(*open.URLError)) {
			return s, err
		}
		time.Sleep(20 * time.Millisecond) // in real time, because a server cannot run in a synctest bubble
	}
}

// If a test passes no function open to [Main], each holder calls openAuthority for the URL of its endpoint.
func openAuthority(url string) (lease.Authority, error) {
	s, err := openURL(url)
	if err != nil {
		return nil, err
	}
	return s.Authority(), nil
}
