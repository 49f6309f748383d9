package fencing

import (
	"errors"

	"github.com/fencedlease/lease"
)

// ErrStale is the error that every [*StaleError] unwraps to, for [errors.Is].
var ErrStale = errors.New("stale fencing token")

// A StaleError says that a token was refused because the resource has seen a newer one. Its holder no
// longer holds the lease, and will not be admitted with this token again.
type StaleError struct {
	Shown lease.Token // the token that was refused
	Seen  lease.Token // the mark, which is newer
}

// Error returns both tokens.
func (e *StaleError) Error() string {
	return "fencing: stale token " + string(e.Shown) + ": " + string(e.Seen) + " has been seen"
}

// Unwrap returns [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }
