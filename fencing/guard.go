package fencing

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Guard lets the newest holder of a lease use a resource, and rejects earlier holders. A Guard runs one
// function at a time. It remembers the newest token that it has seen, and this token is called the mark.
//
// The zero Guard is ready to use and has seen no token. A Guard is safe for concurrent use. A Guard must not
// be copied after first use.
type Guard struct {
	mark atomic.Uint64 // the Epoch of the newest token that the Guard has seen; never falls
	once sync.Once
	slot chan struct{} // full while a function runs
}

// NewGuard returns a Guard with the given mark. After a restart, pass the mark that was stored before, so
// that older tokens are still rejected. An empty mark means that no token has been seen. If the mark is
// malformed, NewGuard returns a [*lease.FieldError] with the code [lease.ErrToken].
func NewGuard(mark lease.Token) (*Guard, error) {
	g := new(Guard)
	if mark != "" {
		if err := g.Advance(mark); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Advance raises the mark to tok. A new holder calls Advance before its first read. When Advance has returned
// nil, no function with an older token is running or will ever run, so that only the holder of tok and newer
// holders can change the data. Advance returns the same errors as Do.
func (g *Guard) Advance(tok lease.Token) error {
	return g.Do(tok, func() error { return nil })
}

// Do calls f if tok is not older than the mark, and returns the error of f. If Do does not call f, it
// returns
//
//   - a [*StaleError] if tok is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken] if tok is empty or malformed;
//   - a *lease.FieldError with the code [lease.ErrOption] if f is nil.
//
// While another function runs, Do waits, so f must not call Do or Advance of the same Guard. Do raises the
// mark before it waits. Therefore a new holder waits for at most one function of an earlier holder: the
// function that is already running. If an earlier holder's call is still waiting, it returns a *StaleError
// when its turn comes, and does not call its function.
//
// If f fails or panics, Do does not lower the mark, because f may have written before it failed. If f
// writes in a transaction, so that a failure undoes all its writes, also store the mark in that
// transaction, as the documentation of [Mark] describes.
func (g *Guard) Do(tok lease.Token, f func() error) error {
	return g.DoContext(context.Background(), tok, f)
}

// DoContext is like Do, but if ctx ends while DoContext waits, it returns the error of ctx and does not call
// f. Unless ctx was done before the call, DoContext has raised the mark even in this case. Once f has
// started, DoContext waits until f returns, even if ctx ends.
func (g *Guard) DoContext(ctx context.Context, tok lease.Token, f func() error) error {
	if f == nil {
		return fields.Missing("Guard.Do.f")
	}
	epoch, err := tok.Epoch()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if seen := g.raise(epoch); seen > epoch {
		return &StaleError{tok, lease.TokenOf(seen)}
	}
	g.once.Do(func() { g.slot = make(chan struct{}, 1) })
	select {
	case g.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.slot }()
	if err := ctx.Err(); err != nil { // ctx may have ended at the same time
		return err
	}
	if seen := g.mark.Load(); seen > epoch {
		return &StaleError{tok, lease.TokenOf(seen)}
	}
	return f()
}

// raise raises the mark to epoch if the mark is lower, and returns the resulting mark.
func (g *Guard) raise(epoch uint64) uint64 {
	for {
		seen := g.mark.Load()
		if seen >= epoch || g.mark.CompareAndSwap(seen, epoch) {
			return max(seen, epoch)
		}
	}
}

// Seen returns the mark, which is the empty Token if the Guard has seen no token. The method Seen does not
// wait, so a function that was passed to [Guard.Do] may call this method.
func (g *Guard) Seen() lease.Token { return lease.TokenOf(g.mark.Load()) }
