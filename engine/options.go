package engine

import (
	"errors"
	"math"
	"strconv"

	"github.com/fencedlease/lease"
)

// HighestFloor is the highest epoch that a Floor can have. If the Floor were higher, no token could be newer
// than the Floor, so a store could not grant a lease.
const HighestFloor = math.MaxInt64 - 1

// CheckOptions checks the options that most stores have, and returns the epoch of the given floor. If the
// floor is empty, this epoch is 0. The last parameter is the highest epoch that the floor may have. Most
// stores pass [HighestFloor].
//
// CheckOptions rejects Limits that are out of range, a negative number of names, and a floor that is
// malformed or too high. The error is then a [*lease.FieldError] that names the field, such as Options.Names.
func CheckOptions(limits lease.Limits, names int, floor lease.Token, most uint64) (epoch uint64, err error) {
	bad := new(lease.FieldError)
	if errors.As(limits.Validate(), &bad) {
		bad.Field = "Options." + bad.Field
		return 0, bad
	}
	if names < 0 {
		return 0, OptionError("Names", strconv.Itoa(names), "must not be negative")
	}
	if floor != "" {
		epoch, err = floor.Epoch()
	}
	switch {
	case errors.As(err, &bad):
		bad.Field = "Options.Floor"
		return 0, bad
	case epoch > most:
		return 0, OptionError("Floor", strconv.Quote(string(floor)), "must be at most "+string(lease.TokenOf(most))+", so that newer tokens exist")
	}
	return epoch, nil
}

// OptionError returns an error about a field of the Options of a store: the value of the field, and the bound
// that it violates, such as "must not be negative". The error has the code [lease.ErrOption].
func OptionError(field, value, bound string) error {
	return &lease.FieldError{Field: "Options." + field, Value: value, Bound: bound, Code: lease.ErrOption}
}

// CheckSwap checks the arguments of the method Swap of a [lease.Store]. It returns the error of
// [lease.CheckName] or [lease.Record.ValidateAfter].
func CheckSwap(name string, old lease.Snapshot, next lease.Record) error {
	if err := lease.CheckName(name); err != nil {
		return err
	}
	return next.ValidateAfter(old.Record)
}
