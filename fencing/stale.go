package fencing

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/stale"
)

// ErrStale is the error that every [*StaleError] wraps. Use it with [errors.Is].
var ErrStale = stale.Err

// A StaleError reports that a resource has refused a token because it has seen a newer one. The holder of
// the refused token no longer holds the lease, and the resource will refuse the token forever.
type StaleError struct {
	Shown lease.Token // the token that was refused
	Seen  lease.Token // the mark, which is newer than the refused token
}

// Error returns both tokens.
func (e *StaleError) Error() string {
	return "fencing: stale token " + string(e.Shown) + ": " + string(e.Seen) + " has been seen"
}

// Unwrap returns [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }
