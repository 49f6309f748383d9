package engine

import (
	"errors"
	"strconv"

	"github.com/fencedlease/lease"
)

// Floor returns the epoch of the option Floor of a store, or 0 if the token is empty. If the token is malformed, or
// its epoch is above most, the error is a [*lease.FieldError].
func Floor(t lease.Token, most uint64) (uint64, error) {
	if t == "" {
		return 0, nil
	}
	epoch, err := t.Epoch()
	if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
		bad.Field = "Options.Floor"
		return 0, bad
	}
	if epoch > most {
		return 0, &lease.FieldError{Field: "Options.Floor", Value: strconv.Quote(string(t)), Bound: "must be at most " + string(lease.TokenOf(most)) + ", so that newer tokens exist", Code: lease.ErrOption}
	}
	return epoch, nil
}
