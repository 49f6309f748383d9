package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A plainGuard is a guard in its simplest form. A real guard could have each of its bugs.
type plainGuard struct {
	bug  string
	slot chan struct{} // full while a function runs
	used atomic.Int64  // last, in nanoseconds
	mark atomic.Value  // a lease.Token
}

// raise raises the mark to a token that is not older.
func (g *plainGuard) raise(tok lease.Token) {
	for {
		seen := g.mark.Load()
		if g.older(tok) || g.mark.CompareAndSwap(seen, tok) {
			return
		}
	}
}

func (g *plainGuard) seen() lease.Token {
	tok, _ := g.mark.Load().(lease.Token)
	return tok
}

func (g *plainGuard) Advance(tok lease.Token) error {
	switch {
	case g.bug == "refuses the token of its mark" && tok == g.seen():
		return g.stale(tok)
	case g.bug == "advances without waiting" && g.valid(tok) == nil && !g.older(tok):
		g.raise(tok)
		return nil
	}
	return g.Do(tok, write)
}

func (g *plainGuard) older(tok lease.Token) bool {
	switch g.bug {
	case "compares tokens as strings":
		return g.text(tok) < g.text(g.seen())
	case "compares nothing":
		return false
	}
	return tok.Compare(g.seen()) < 0
}

// text is a number without its zeros, as another's tokens are.
func (g *plainGuard) text(tok lease.Token) string {
	n, _ := tok.Epoch()
	return fmt.Sprint(n)
}

func (g *plainGuard) stale(tok lease.Token) error {
	if g.bug == "does not say why" {
		return errors.New("stale")
	}
	return fmt.Errorf("token %s is older than %s", tok, g.seen())
}

func (g *plainGuard) valid(tok lease.Token) error {
	if g.bug == "admits anything before the first" {
		return nil
	}
	return tok.Validate()
}

func (g *plainGuard) Do(tok lease.Token, f func() error) (err error) {
	if err := g.valid(tok); err != nil {
		return err
	}
	if since := g.used.Swap(time.Now().UnixNano()); g.bug == "a mark has a time to live" && time.Now().UnixNano()-since > int64(24*time.Hour) {
		g.mark.Store(lease.Token(""))
	}
	before, fresh := g.seen(), !g.older(tok)
	if g.bug != "lets all pass that wait" {
		g.raise(tok) // those that wait are older from now on
	}
	g.slot <- struct{}{}
	defer func() { <-g.slot }()
	if g.older(tok) && !(g.bug == "admits anything before the first" && g.seen() == "") {
		if fresh && g.bug == "names the shown token as the seen one after a wait" {
			return fmt.Errorf("token %s is older than %s", tok, tok)
		}
		return g.stale(tok)
	}
	if g.bug == "a failure restores the mark that it began with" {
		before = g.seen()
	} else {
		g.mark.Store(tok)
	}
	defer func() {
		if g.bug == "a failure restores the mark that it began with" && err != nil {
			g.mark.Store(before)
		}
	}()
	if g.bug == "lets functions run at once" {
		<-g.slot
		defer func() { g.slot <- struct{}{} }()
	}
	return f()
}

// DoContext is like Do, but a context that ends ends its wait.
func (g *plainGuard) DoContext(ctx context.Context, tok lease.Token, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.bug != "a wait that ended runs its function later" {
		inner := f
		f = func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return inner()
		}
	}
	done := make(chan error, 1)
	go func() { done <- g.Do(tok, f) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reopen returns the guard that a process finds after a restart.
func (g *plainGuard) reopen() Guard {
	next := &plainGuard{bug: g.bug, slot: make(chan struct{}, 1)}
	if g.bug != "keeps its mark in memory only" {
		next.mark.Store(g.seen())
	}
	return next
}

// plainGuards is a suite over guards with that bug.
func plainGuards(bug string) *suite {
	o := &Options{
		Bubble: true,
		Seed:   1,
		Guard: GuardHooks{Reopen: func(_ testing.TB, g Guard) Guard {
			if closed, ok := g.(interface{ reopen() Guard }); ok {
				return closed.reopen()
			}
			return g
		}},
	}
	return &suite{rules: guardRules, options: o.withDefaults(), newGuard: func(testing.TB) Guard {
		return &plainGuard{bug: bug, slot: make(chan struct{}, 1)}
	}}
}

func TestPlainGuard(t *testing.T) { plainGuards("").test(t) }
