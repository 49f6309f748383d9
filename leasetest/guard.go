package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

var guardRules = []rule{
	{"G1/no-older-token-after-a-newer", "after a token was accepted, no older token is accepted", 0, func(p *tester) {
		g := p.guard()
		for _, epoch := range []uint64{1, 2, 9, 10, 99, 100, 1<<32 - 1, 1 << 32, 1<<53 + 1, 1<<63 - 1} {
			p.admits(g, epoch)
			if epoch > 1 {
				p.refuses(g, lease.TokenOf(epoch-1))
			}
			p.refuses(g, "")
		}
	}},
	{"G1/older-and-newer-at-the-same-time", "of functions under different tokens, called at the same time, none runs after one with a newer token, and no two run at once", 0, func(p *tester) {
		g := p.guard()
		var running atomic.Int32
		var newest atomic.Uint64
		p.callConcurrently(8, func(i int) {
			for n := range uint64(20) {
				epoch := 1 + n + uint64(i)
				_ = g.Do(lease.TokenOf(epoch), func() error {
					if running.Add(1) != 1 {
						p.Errorf("two functions run at once")
					}
					if last := newest.Swap(epoch); last > epoch {
						p.Errorf("epoch %d ran after %d", epoch, last)
					}
					p.yield()
					running.Add(-1)
					return nil
				})
			}
		})
	}},
	{"G2/advance-waits-for-older-functions", "when advance has returned, no function of an older token is running", 0, func(p *tester) {
		g := p.guard()
		var done atomic.Bool
		end := p.occupy(g, 1, func() { done.Store(true) })
		const advances = 2 // when the second advance starts, the first has already raised the mark
		advanced := make(chan error, advances)
		for range advances {
			go p.guarded(func() {
				err := g.Advance(lease.TokenOf(2))
				if !done.Load() {
					err = errors.Join(err, errors.New("advance returned while an older function ran"))
				}
				advanced <- err
			})()
			p.pass(p.Unit)
		}
		end()
		for range advances {
			if err := <-advanced; err != nil {
				p.Errorf("%v", err)
			}
		}
	}},
	{"G4/equal-tokens-pass", "the token of the mark is admitted again and again", 0, func(p *tester) {
		g := p.guard()
		for range 3 {
			p.admits(g, 7)
			p.need(g.Advance(lease.TokenOf(7)), "advance to the mark")
		}
	}},
	{"G4/malformed-tokens-never-pass", "an empty or malformed token is refused, also by a guard that has seen none", 0, func(p *tester) {
		g := p.guard()
		for _, tok := range []lease.Token{"", "0", "1", "v10", "00000000000000000000", "0000000000000000001", "99999999999999999999",
			"00000000000000000001 ", "-0000000000000000001", "0000000000000000000a",
			"+0000000000000000001", " 0000000000000000001", "0000000000000000_001", "0x000000000000000001",
			"09223372036854775808", "18446744073709551615"} { // 1<<63 and 1<<64-1
			p.refuses(g, tok)
		}
		p.admits(g, 1)
	}},
	{"G5/a-refusal-names-both-tokens", "a refusal says which token was shown and which was seen", 0, func(p *tester) {
		g := p.guard()
		old, next := lease.TokenOf(41), lease.TokenOf(42)
		p.need(g.Advance(next), "advance")
		for _, err := range []error{g.Do(old, write), g.Advance(old)} {
			p.namesBoth(err, old, next)
		}
	}},
	{"G5/a-refusal-after-a-wait-names-both-tokens", "a refusal of a call that waited for a function says which token was shown and which was seen meanwhile", 0, func(p *tester) {
		old, next := lease.TokenOf(41), lease.TokenOf(42)
		calls := []func(g Guard) error{
			func(g Guard) error { return g.Do(old, write) },
			func(g Guard) error { return g.Advance(old) },
			func(g Guard) error { return g.(contextGuard).DoContext(p.ctx, old, write) },
		}
		if !p.can(hasDoContext) {
			calls = calls[:2]
		}
		for _, call := range calls {
			g := p.guard()
			var others sync.WaitGroup
			end := p.occupy(g, 40, func() {})
			refusal := make(chan error, 1)
			go p.guarded(func() { refusal <- call(g) })()
			p.pass(p.Unit) // the call waits until the running function ends
			others.Go(p.guarded(func() { _ = g.Advance(next) }))
			p.pass(p.Unit)
			end()
			err := <-refusal
			others.Wait()
			p.history.printf("the call that waited: %v", err)
			if err == nil {
				continue // other rules require that the guard refuses this token
			}
			p.namesBoth(err, old, next)
		}
	}},
	{"G6/the-mark-outlives-idleness", "a guard that was not used for a long time still refuses the tokens that it refused before", 0, func(p *tester) {
		g := p.guard()
		p.admits(g, 7)
		p.pass(p.idleTime())
		p.refuses(g, lease.TokenOf(6))
		p.admits(g, 7)
	}},
	{"G6/the-mark-outlives-reopening", "a guard that was opened again refuses the tokens that it refused before, whether a function, a failed one or an advance raised the mark", hasReopenGuard, func(p *tester) {
		g := p.guard()
		for i, raise := range []func(tok lease.Token) error{
			func(tok lease.Token) error { return g.Do(tok, write) },
			func(tok lease.Token) error { return g.Advance(tok) },
			func(tok lease.Token) error {
				_ = g.Do(tok, func() error { return errors.New("the function failed") })
				return nil
			},
		} {
			epoch := uint64(7 + 2*i)
			p.need(raise(lease.TokenOf(epoch)), "a call with a newer token")
			g = p.Options.Guard.Reopen(p.TB, g)
			p.checkMade(g, "Options.Guard.Reopen")
			p.refuses(g, lease.TokenOf(epoch-1))
			p.admits(g, epoch)
		}
	}},
	{"G6/a-failure-keeps-the-mark-that-was-raised-meanwhile", "a function that fails does not lower the mark that a newer token has raised while the function ran", 0, func(p *tester) {
		for _, show := range []func(g Guard) error{
			func(g Guard) error { return g.Advance(lease.TokenOf(2)) },
			func(g Guard) error { return g.Do(lease.TokenOf(2), write) },
		} {
			g := p.guard()
			shown := make(chan error, 1)
			_ = g.Do(lease.TokenOf(1), func() error {
				go p.guarded(func() { shown <- show(g) })()
				p.pass(p.Unit) // the guard sees the newer token while the function runs
				return errors.New("the function failed")
			})
			p.need(<-shown, "a call with a newer token, made while the function ran")
			p.refuses(g, lease.TokenOf(1))
			p.admits(g, 2)
		}
	}},
	{"G7/waits-for-one-function", "a new holder waits for the function that runs, and for no other that waits too", 0, func(p *tester) {
		g := p.guard()
		end := p.occupy(g, 1, func() {})
		var older sync.WaitGroup
		for i := range 3 {
			older.Go(p.guarded(func() {
				p.Sleep(time.Duration(i) * p.Unit / 4) // so that the calls of Do start one after another
				_ = g.Do(lease.TokenOf(1), func() error {
					p.Errorf("a function of an older token ran after a newer one was shown")
					return nil
				})
			}))
		}
		p.pass(p.Unit)
		advanced := make(chan error, 1)
		go p.guarded(func() { advanced <- g.Advance(lease.TokenOf(2)) })()
		p.pass(p.Unit)
		end()
		p.need(<-advanced, "advance")
		older.Wait()
	}},
	{"G7/a-wait-ends-with-its-context", "a call that waits for a function returns its context's error when the context ends, and its own function does not run, then or later", hasDoContext, func(p *tester) {
		for _, epoch := range []uint64{1, 2} { // the token of the function that runs, and a newer one
			g := p.guard()
			running := make(chan struct{})
			var first sync.WaitGroup
			first.Go(p.guarded(func() {
				_ = g.Do(lease.TokenOf(1), func() error {
					close(running)
					p.Sleep(5*p.Unit + 2*p.Slack)
					return nil
				})
			}))
			<-running
			for _, wait := range []time.Duration{0, p.Unit} {
				ctx, cancel := context.WithTimeout(p.ctx, wait)
				defer cancel()
				sent := time.Now()
				err := g.(contextGuard).DoContext(ctx, lease.TokenOf(epoch), func() error {
					p.Errorf("epoch %d: the function ran, and its context had ended", epoch)
					return nil
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					p.Errorf("epoch %d: the context ended after %v, and the call returned %v", epoch, wait, err)
				}
				if took := time.Since(sent); took > wait+p.Slack {
					p.Errorf("epoch %d: the context ended after %v, and the call took %v", epoch, wait, took)
				}
			}
			first.Wait()
			p.pass(p.Unit)
			p.admits(g, epoch)
		}
	}},
	// The next rule passes a function that panics to the guard. If the guard runs the function in a new
	// goroutine and does not recover, the process ends, so this rule is the last in the list.
	{"G3/a-failure-does-not-lower-the-mark", "a function that fails or panics leaves the mark raised", 0, func(p *tester) {
		g := p.guard()
		p.admits(g, 1)
		failure := errors.New("the function failed")
		if err := g.Do(lease.TokenOf(5), func() error { return failure }); !errors.Is(err, failure) {
			p.Errorf("the function's error comes back as %v", err)
		}
		p.refuses(g, lease.TokenOf(4))
		func() {
			defer func() { _ = recover() }()
			_ = g.Do(lease.TokenOf(6), func() error {
				p.panic("the function under the guard")
				return nil
			})
		}()
		p.refuses(g, lease.TokenOf(5))
		p.admits(g, 6)
	}},
}

// A Guard protects a resource against late writes of earlier holders. Its methods are safe for concurrent use
// by multiple goroutines. The type fencing.Guard is a Guard.
type Guard interface {
	// Advance tells the guard that tok is in use, so that the guard rejects all older tokens from then on. A
	// holder calls Advance before it first reads the resource. After Advance has returned nil, no function
	// that was passed to Do with an older token is still running. Advance returns an error if the guard has
	// already seen a token newer than tok, or if tok is empty or malformed.
	Advance(tok lease.Token) error

	// Do first has the same effect as Advance. If the guard accepts tok, Do calls f and returns the error of
	// f. Otherwise Do returns an error and does not call f. A guard runs one function at a time, so a call of
	// Do may have to wait. If the guard receives a newer token during this wait, the call of Do returns an
	// error and does not call f.
	Do(tok lease.Token, f func() error) error
}

// TestGuard tests a guard against the G clauses of SPEC.md, with one subtest for each rule. If the guard has
// a method DoContext like that of fencing.Guard, TestGuard tests this method as well. Each subtest calls
// newGuard for a guard that has not received a token yet, in the same way as [TestStore] calls newStore.
func TestGuard(t *testing.T, newGuard func(t testing.TB) Guard, o *Options) {
	must(newGuard != nil, "TestGuard: newGuard must not be nil")
	s := &suite{rules: guardRules, options: o.withDefaults(), newGuard: newGuard}
	s.test(t)
}

func (p *tester) guard() Guard {
	p.Helper()
	g := p.suite.newGuard(p.TB)
	p.checkMade(g, "newGuard")
	return g
}

// occupy lets g run a function under a token of the epoch. The returned function lets that function call f and return.
func (p *tester) occupy(g Guard, epoch uint64, f func()) (end func()) {
	running, ended := make(chan struct{}), make(chan struct{})
	go p.guarded(func() {
		_ = g.Do(lease.TokenOf(epoch), func() error {
			close(running)
			<-ended
			f()
			return nil
		})
	})()
	<-running
	return func() { close(ended) }
}

// namesBoth requires that the refusal err says that old was shown and next was seen.
func (p *tester) namesBoth(err error, old, next lease.Token) {
	p.Helper()
	if err == nil || !strings.Contains(err.Error(), string(old)) || !strings.Contains(err.Error(), string(next)) {
		p.Errorf("the refusal of %s after %s is %v", old, next, err)
	}
	if stale := (*fencing.StaleError)(nil); errors.As(err, &stale) && (stale.Shown != old || stale.Seen != next) {
		p.Errorf("the refusal of %s after %s names %s as shown and %s as seen", old, next, stale.Shown, stale.Seen)
	}
}

func write() error { return nil }

func (p *tester) admits(g Guard, epoch uint64) {
	p.Helper()
	ran := false
	err := g.Do(lease.TokenOf(epoch), func() error { ran = true; return nil })
	p.history.printf("do under epoch %d: %v", epoch, err)
	if err != nil || !ran {
		p.Errorf("epoch %d: %v, and the function ran: %v", epoch, err, ran)
	}
}

func (p *tester) refuses(g Guard, tok lease.Token) {
	p.Helper()
	ran := false
	err := g.Do(tok, func() error { ran = true; return nil })
	p.history.printf("do under token %q: %v", tok, err)
	if err == nil || ran {
		p.Errorf("token %q: %v, and the function ran: %v", tok, err, ran)
	}
	if g.Advance(tok) == nil {
		p.Errorf("token %q: advance returned nil", tok)
	}
}

func (p *tester) yield() {
	if p.Bubble {
		p.Sleep(1)
	}
}
