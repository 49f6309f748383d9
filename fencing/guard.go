package fencing

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/lease"
)

// A Guard belongs to one resource and lets only the newest holder of its lease use it. It
// remembers the newest token it was shown, the mark, and runs one function at a time.
//
// The zero Guard is ready for use and has seen no token. A Guard may be used by any number
// of goroutines, and must not be copied after first use.
type Guard struct {
	mark atomic.Uint64 // the Epoch of the newest token shown; never falls
	once sync.Once
	slot chan struct{} // full while a function runs
}

// NewGuard returns a Guard that has seen mark, so that a process that starts again refuses
// what it refused before. The empty Token is the mark of a Guard that has seen none; a
// malformed one is a [*lease.FieldError], and no Guard.
func NewGuard(mark lease.Token) (*Guard, error) {
	g := new(Guard)
	if mark != "" {
		if err := g.Advance(mark); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Advance shows tok to the guard: a new holder calls it before its first read. When it
// returns nil, no function of an older holder runs or will run, so that what is read from
// now on stays as it is until this holder, or a newer one, changes it.
//
// It fails as Do does.
func (g *Guard) Advance(tok lease.Token) error {
	return g.Do(tok, func() error { return nil })
}

// Do runs f if tok is not older than the mark, and returns f's error. A token that is
// older is refused with a [*StaleError]; an empty or malformed one with a
// [*lease.FieldError] (code [lease.ErrToken]), whatever the mark is, and so is a nil f (code
// [lease.ErrOption]). Then f is not called.
//
// One function runs at a time, so Do waits; f must not call Do or Advance of the same
// Guard. The mark is raised when tok is shown, even before the wait: the functions of
// older holders that wait as well are refused when their turn comes, so that a new holder
// waits for one function at most. It stays raised if f fails or panics, because a function
// that failed may have written. (Where a failed write is certain to leave nothing behind,
// in a transaction, the mark is best kept there too: see [Mark].)
func (g *Guard) Do(tok lease.Token, f func() error) error {
	return g.DoContext(context.Background(), tok, f)
}

// DoContext is Do, but ends the wait with the context's error when ctx is done; f is not
// called then, not even if its turn has come. A context that is done already leaves the mark
// as it is. Once f runs, the context is f's own affair.
func (g *Guard) DoContext(ctx context.Context, tok lease.Token, f func() error) error {
	if f == nil {
		return missing("Guard.Do.f")
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
	if err := ctx.Err(); err != nil { // it may have ended just as the turn came
		return err
	}
	if seen := g.mark.Load(); seen > epoch {
		return &StaleError{tok, lease.TokenOf(seen)}
	}
	return f()
}

// missing refuses an argument that is nil.
func missing(argument string) error {
	return &lease.FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: lease.ErrOption}
}

// raise raises the mark to epoch if it is lower, and returns the mark.
func (g *Guard) raise(epoch uint64) uint64 {
	for {
		seen := g.mark.Load()
		if seen >= epoch || g.mark.CompareAndSwap(seen, epoch) {
			return max(seen, epoch)
		}
	}
}

// Seen returns the mark: the newest token that was shown, and the empty Token if there was
// none. It does not wait, and may be called by a function that Do runs.
func (g *Guard) Seen() lease.Token { return lease.TokenOf(g.mark.Load()) }
