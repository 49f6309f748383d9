package fencing

import (
	"errors"

	"github.com/fencedlease/lease"
)

// ErrStale is what [errors.Is] finds in every refusal of a token that is older than the
// mark. The refusal itself is a [*StaleError].
var ErrStale = errors.New("stale fencing token")

// A StaleError refuses a token: a newer one has been seen. Whoever showed it no longer
// holds the lease, and nothing that it tries again under this token will be admitted.
type StaleError struct {
	Shown lease.Token // the token that was refused
	Seen  lease.Token // the mark, which is newer
}

func (e *StaleError) Error() string {
	return "fencing: stale token " + string(e.Shown) + ": " + string(e.Seen) + " has been seen"
}

// Unwrap returns [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }
