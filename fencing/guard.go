package fencing

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/lease"
)

// A Guard lets only the newest holder of a lease use a resource. It remembers the newest token that it
// has seen, the mark, and runs one function at a time.
//
// The zero Guard is ready to use and has seen no token. A Guard is safe for use by several goroutines
// at once. It must not be copied after first use.
type Guard struct {
	mark atomic.Uint64 // the Epoch of the newest token seen; never falls
	once sync.Once
	slot chan struct{} // full while a function runs
}

// NewGuard returns a Guard that has seen mark. A process that restarts uses it to refuse what it
// refused before. The empty Token is the mark of a Guard that has seen no token. A malformed mark is a
// [*lease.FieldError] with the code [lease.ErrToken].
func NewGuard(mark lease.Token) (*Guard, error) {
	g := new(Guard)
	if mark != "" {
		if err := g.Advance(mark); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Advance raises the mark to tok. A new holder calls it before its first read. When it returns nil, no
// function of an older holder is running or will run. So the data does not change until this holder,
// or a newer one, changes it. Its errors are those of Do.
func (g *Guard) Advance(tok lease.Token) error {
	return g.Do(tok, func() error { return nil })
}

// Do calls f if tok is not older than the mark, and returns the error of f. Otherwise it does not call
// f and returns
//
//   - a [*StaleError] if tok is older than the mark;
//   - a [*lease.FieldError] with the code [lease.ErrToken] if tok is empty or malformed;
//   - a [*lease.FieldError] with the code [lease.ErrOption] if f is nil.
//
// One function runs at a time, and Do waits for its turn. So f must not call Do or Advance of the same
// Guard. Do raises the mark before it waits: functions of older holders that are waiting too are
// refused when their turn comes. So a new holder waits for at most one function.
//
// The mark stays raised if f fails or panics, because f may have written before it failed. If the data
// is written in a transaction, which leaves nothing behind when it fails, store the mark there too:
// see [Mark].
func (g *Guard) Do(tok lease.Token, f func() error) error {
	return g.DoContext(context.Background(), tok, f)
}

// DoContext is Do with a wait that ends when ctx does: then it returns the error of ctx and does not
// call f. If ctx is done before the call, the mark does not change. DoContext does not stop f once it
// runs.
func (g *Guard) DoContext(ctx context.Context, tok lease.Token, f func() error) error {
	if f == nil {
		return lease.Missing("Guard.Do.f")
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
	if err := ctx.Err(); err != nil { // both cases were ready
		return err
	}
	if seen := g.mark.Load(); seen > epoch {
		return &StaleError{tok, lease.TokenOf(seen)}
	}
	return f()
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

// Seen returns the mark: the newest token that the Guard has seen, or the empty Token. It does not wait.
// A function that Do runs may call it.
func (g *Guard) Seen() lease.Token { return lease.TokenOf(g.mark.Load()) }
