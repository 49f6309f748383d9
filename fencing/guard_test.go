package fencing_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasetest"
)

func tok(epoch uint64) lease.Token { return lease.TokenOf(epoch) }

// The strings in malformed are not well-formed tokens, although some of them sort above every token.
var malformed = []lease.Token{
	"", "0", "7", "00000000000000000000", "99999999999999999999", "09223372036854775808", "000000000000000000007",
	"0000000000000000007", "+0000000000000000007", "-0000000000000000007", "0000000000000000000x", "zzzzzzzzzzzzzzzzzzzz",
	" 0000000000000000007", "0000000000000000000７",
}

var errWrite = errors.New("write failed")

// SPEC G1 to G7: a Guard passes the tests for every guard. It is opened again with its mark.
func TestGuardConforms(t *testing.T) {
	leasetest.TestGuard(t, func(testing.TB) leasetest.Guard { return new(fencing.Guard) }, &leasetest.Options{
		Bubble: true,
		Guard: leasetest.GuardHooks{Reopen: func(t testing.TB, g leasetest.Guard) leasetest.Guard {
			again, err := fencing.NewGuard(g.(*fencing.Guard).Seen())
			if err != nil {
				t.Fatal(err)
			}
			return again
		}},
	})
	for _, bad := range malformed[1:] {
		if g, err := fencing.NewGuard(bad); g != nil || lease.CodeOf(err) != lease.ErrToken {
			t.Errorf("NewGuard(%q): %v, %v, want no Guard and ErrToken", bad, g, err)
		}
	}
}

// A function that ends its goroutine may have written, so the mark stays raised. The next one runs.
func TestFunctionEndsItsGoroutine(t *testing.T) {
	var g fencing.Guard
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Do(tok(9), func() error { runtime.Goexit(); return nil }) })
	wg.Wait()
	if err := g.Do(tok(9), func() error { return nil }); err != nil || g.Seen() != tok(9) {
		t.Errorf("%v, and the mark is %q", err, g.Seen())
	}
}

// Do refuses a stale token without waiting.
func TestGuardRefusesAStaleTokenWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fencing.Guard
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { g.Do(tok(2), func() error { time.Sleep(time.Minute); return nil }) })
		synctest.Wait()
		start := time.Now()
		if err := g.Advance(tok(1)); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("err = %v, want ErrStale", err)
		}
		if g.Seen() != tok(2) || time.Since(start) != 0 {
			t.Errorf("Seen() = %q after %v, want %q at once", g.Seen(), time.Since(start), tok(2))
		}
	})
}

// An ending context ends after the first call of its Err, too late for a select to notice.
type ending struct {
	context.Context
	looks int
}

func (c *ending) Done() <-chan struct{} { return nil }

func (c *ending) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// A function is not called if its context has ended, even just before its turn. A context that ends later
// does not end it.
func TestDoContext(t *testing.T) {
	var g fencing.Guard
	done, cancel := context.WithCancel(t.Context())
	called := func() error { t.Error("called"); return nil }
	if err := g.DoContext(done, tok(1), func() error { cancel(); return errWrite }); err != errWrite {
		t.Errorf("ends meanwhile: %v, want the error of the function", err)
	}
	if err := g.DoContext(done, tok(2), called); err != context.Canceled || g.Seen() != tok(1) {
		t.Errorf("done already: %v, and the mark is %q", err, g.Seen())
	}
	if err := g.DoContext(&ending{Context: t.Context()}, tok(2), called); err != context.Canceled {
		t.Errorf("ends as the turn comes: %v", err)
	}
	if err := g.Do(tok(2), func() error { return nil }); err != nil {
		t.Errorf("the guard is not free: %v", err)
	}
}

// SPEC G5.
func TestStaleErrorNamesBothTokens(t *testing.T) {
	err := error(&fencing.StaleError{Shown: tok(6), Seen: tok(7)})
	const want = "fencing: stale token 00000000000000000006: 00000000000000000007 has been seen"
	if err.Error() != want || !errors.Is(err, fencing.ErrStale) || !errors.Is(err, lease.ErrLost) {
		t.Errorf("%q, want %q, and ErrStale, which matches ErrLost", err, want)
	}
}
