package fencing

import "github.com/fencedlease/lease"

// ErrStale is the error that every [*StaleError] wraps. ErrStale matches [lease.ErrLost], because the holder
// of a stale token no longer holds the lease, even if the holder has not noticed that yet. To detect a stale
// token, pass ErrStale to [errors.Is].
var ErrStale error = stale{}

type stale struct{}

func (stale) Error() string { return "stale fencing token" }

// Is reports whether target is [lease.ErrLost].
func (stale) Is(target error) bool { return target == lease.ErrLost }

// A StaleError reports that a resource has rejected a token because it has seen a newer one. The resource
// will reject the token forever.
type StaleError struct {
	Shown lease.Token // the token that was refused
	Seen  lease.Token // the mark, which is newer than the refused token
}

// Error returns a text with both tokens.
func (e *StaleError) Error() string {
	return "fencing: stale token " + string(e.Shown) + ": " + string(e.Seen) + " has been seen"
}

// Unwrap returns [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }
