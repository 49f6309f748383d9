package fencing_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

func tok(epoch uint64) lease.Token { return lease.TokenOf(epoch) }

// The strings in malformed are not well-formed tokens, although some of them sort above every
// token.
var malformed = []lease.Token{
	"", "0", "7", "00000000000000000000", "99999999999999999999", "09223372036854775808", "000000000000000000007",
	"0000000000000000007", "+0000000000000000007", "-0000000000000000007", "0000000000000000000x", "zzzzzzzzzzzzzzzzzzzz",
	" 0000000000000000007", "0000000000000000000７",
}

var errWrite = errors.New("write failed")

// SPEC G1, G4.
func TestGuardTable(t *testing.T) {
	for _, c := range []struct {
		name        string
		mark, shown lease.Token
		stale       bool
		seen        lease.Token
	}{
		{"first token", "", tok(1), false, tok(1)},
		{"first token, large", "", tok(1<<63 - 1), false, tok(1<<63 - 1)},
		{"equal", tok(7), tok(7), false, tok(7)},
		{"newer by one", tok(7), tok(8), false, tok(8)},
		{"older by one", tok(7), tok(6), true, tok(7)},
		{"newer by a digit", tok(9), tok(10), false, tok(10)}, // "9" > "10" as strings
		{"older by a digit", tok(10), tok(9), true, tok(10)},
		{"newest there is, then one below", tok(1<<63 - 1), tok(1<<63 - 2), true, tok(1<<63 - 1)},
		{"beyond the exact floats", tok(1<<53 + 1), tok(1 << 53), true, tok(1<<53 + 1)},
	} {
		for method, show := range map[string]func(*fencing.Guard, lease.Token) (called bool, err error){
			"Do": func(g *fencing.Guard, tok lease.Token) (called bool, err error) {
				err = g.Do(tok, func() error { called = true; return nil })
				return called, err
			},
			"Advance": func(g *fencing.Guard, tok lease.Token) (bool, error) {
				err := g.Advance(tok)
				return err == nil, err
			},
		} {
			t.Run(c.name+"/"+method, func(t *testing.T) {
				g, err := fencing.NewGuard(c.mark)
				if err != nil {
					t.Fatal(err)
				}
				called, err := show(g, c.shown)
				if errors.Is(err, fencing.ErrStale) != c.stale || called == c.stale || c.stale == (err == nil) {
					t.Errorf("called = %v, err = %v; want stale = %v", called, err, c.stale)
				}
				var stale *fencing.StaleError
				if errors.As(err, &stale) && *stale != (fencing.StaleError{Shown: c.shown, Seen: c.mark}) {
					t.Errorf("err = %+v, want shown %s, seen %s", stale, c.shown, c.mark)
				}
				if g.Seen() != c.seen {
					t.Errorf("Seen() = %q, want %q", g.Seen(), c.seen)
				}
			})
		}
	}
}

// SPEC G4.
func TestGuardRefusesMalformedTokens(t *testing.T) {
	for _, mark := range []lease.Token{"", tok(7)} {
		for _, bad := range malformed {
			g, err := fencing.NewGuard(mark)
			if err != nil {
				t.Fatal(err)
			}
			var field *lease.FieldError
			if err := g.Advance(bad); !errors.As(err, &field) || field.Code != lease.ErrToken {
				t.Errorf("mark %q: Advance(%q) = %v, want a FieldError with ErrToken", mark, bad, err)
			}
			if err := g.Do(bad, func() error { t.Errorf("Do(%q) called f", bad); return nil }); lease.CodeOf(err) != lease.ErrToken {
				t.Errorf("mark %q: Do(%q) = %v, want ErrToken", mark, bad, err)
			}
			if g.Seen() != mark {
				t.Errorf("after %q: Seen() = %q, want %q", bad, g.Seen(), mark)
			}
		}
	}
}

// If a process restarts with its stored mark, it refuses the tokens that it refused before.
//
// SPEC G6.
func TestNewGuardStartsFromAStoredMark(t *testing.T) {
	var g fencing.Guard
	if g.Seen() != "" {
		t.Fatalf("the zero Guard has seen %q", g.Seen())
	}
	if err := g.Advance(tok(5)); err != nil {
		t.Fatal(err)
	}
	again, err := fencing.NewGuard(g.Seen())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Advance(tok(4)); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("after the start, an older token: %v, want ErrStale", err)
	}
	if err := again.Advance(tok(5)); err != nil {
		t.Errorf("after the start, an equal token: %v", err)
	}
	for _, bad := range malformed[1:] {
		if g, err := fencing.NewGuard(bad); g != nil || lease.CodeOf(err) != lease.ErrToken {
			t.Errorf("NewGuard(%q): %v, %v, want no Guard and ErrToken", bad, g, err)
		}
	}
}

// A function that fails, panics or ends its goroutine may have written, so the mark stays raised.
// The next function runs.
//
// SPEC G3, G6.
func TestGuardAfterAFailedFunction(t *testing.T) {
	for name, end := range map[string]func() error{
		"error":  func() error { return errWrite },
		"panic":  func() error { panic(errWrite) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var g fencing.Guard
			var returned error
			var recovered any
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { recovered = recover() }()
				returned = g.Do(tok(9), end)
			})
			wg.Wait()
			if (returned == errWrite) != (name == "error") || (recovered == errWrite) != (name == "panic") {
				t.Errorf("returned %v, panicked with %v", returned, recovered)
			}
			if g.Seen() != tok(9) {
				t.Errorf("Seen() = %q: a failed function lowered the mark", g.Seen())
			}
			if err := g.Do(tok(8), func() error { return nil }); !errors.Is(err, fencing.ErrStale) {
				t.Errorf("an older write after a failed newer one: %v, want ErrStale", err)
			}
			if err := g.Do(tok(9), func() error { return nil }); err != nil {
				t.Errorf("the same holder again: %v", err)
			}
		})
	}
}

// If a write of an older holder was admitted, Advance returns only after the write.
//
// SPEC G2.
func TestAdvanceWaitsForTheRunningFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fencing.Guard
		over := false
		go g.Do(tok(1), func() error {
			time.Sleep(time.Minute)
			over = true
			return nil
		})
		synctest.Wait()
		if err := g.Advance(tok(2)); err != nil {
			t.Fatal(err)
		}
		if !over {
			t.Error("Advance returned while an older function was running")
		}
	})
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

// A new holder waits only for the function that is running, even if many older functions wait.
//
// SPEC G7.
func TestNewHolderWaitsForOneFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fencing.Guard
		ran, refused := 0, atomic.Int64{}
		for range 10 {
			go func() {
				switch err := g.Do(tok(1), func() error { ran++; time.Sleep(time.Second); return nil }); {
				case err == nil:
				case errors.Is(err, fencing.ErrStale):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		start := time.Now()
		if err := g.Advance(tok(2)); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v, want 1s", waited)
		}
		synctest.Wait()
		if ran != 1 || refused.Load() != 9 {
			t.Errorf("%d ran and %d were refused, want 1 and 9", ran, refused.Load())
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

// SPEC G7.
func TestDoContext(t *testing.T) {
	f := func() error { return nil }
	t.Run("done already", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var g fencing.Guard
		if err := g.DoContext(ctx, tok(1), func() error { t.Error("called"); return nil }); err != context.Canceled {
			t.Errorf("err = %v", err)
		}
		if g.Seen() != "" {
			t.Errorf("Seen() = %q, want none", g.Seen())
		}
	})
	t.Run("ends in the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var g fencing.Guard
			go g.Do(tok(1), func() error { time.Sleep(time.Hour); return nil })
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			if err := g.DoContext(ctx, tok(2), func() error { t.Error("called"); return nil }); err != context.DeadlineExceeded {
				t.Errorf("err = %v", err)
			}
			if waited := time.Since(start); waited != time.Minute {
				t.Errorf("waited %v, want 1m", waited)
			}
			if err := g.Do(tok(1), f); !errors.Is(err, fencing.ErrStale) {
				t.Errorf("an older token after a newer one was shown: %v, want ErrStale", err)
			}
			if err := g.Do(tok(2), f); err != nil {
				t.Errorf("the same holder again: %v", err)
			}
		})
	})
	t.Run("ends as the turn comes", func(t *testing.T) {
		var g fencing.Guard
		if err := g.DoContext(&ending{Context: t.Context()}, tok(1), func() error { t.Error("called"); return nil }); err != context.Canceled {
			t.Errorf("err = %v", err)
		}
		if err := g.Do(tok(1), f); err != nil {
			t.Errorf("the guard is not free: %v", err)
		}
	})
	t.Run("does not end f", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var g fencing.Guard
		if err := g.DoContext(ctx, tok(1), func() error { cancel(); return errWrite }); err != errWrite {
			t.Errorf("err = %v, want f's", err)
		}
	})
}

// Holders that call Advance, read and write at the same time lose no update. The race detector
// checks that the guarded data needs no other protection.
func TestGuardConcurrently(t *testing.T) {
	const holders, sections = 16, 50
	var g fencing.Guard
	var data, admitted int
	var wg sync.WaitGroup
	for i := range holders {
		mine := tok(uint64(i + 1))
		wg.Go(func() {
			if g.Advance(mine) != nil {
				return
			}
			for range sections {
				var read int
				if g.Do(mine, func() error { read = data; return nil }) != nil {
					return
				}
				if g.Do(mine, func() error { data = read + 1; admitted++; return nil }) != nil {
					return
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if data != admitted || admitted < sections {
		t.Errorf("%d writes were admitted and %d are there; the newest holder alone made %d", admitted, data, sections)
	}
	if g.Seen() != tok(holders) {
		t.Errorf("Seen() = %q, want %q", g.Seen(), tok(holders))
	}
}

// SPEC G5.
func TestStaleErrorNamesBothTokens(t *testing.T) {
	err := error(&fencing.StaleError{Shown: tok(6), Seen: tok(7)})
	const want = "fencing: stale token 00000000000000000006: 00000000000000000007 has been seen"
	if err.Error() != want || !errors.Is(err, fencing.ErrStale) {
		t.Errorf("%q, want %q, and ErrStale", err, want)
	}
}
