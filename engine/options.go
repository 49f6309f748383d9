package engine

import (
	"errors"
	"math"
	"strconv"

	"github.com/fencedlease/lease"
)

// HighestFloor is the highest epoch of a Floor above which newer tokens exist.
const HighestFloor = math.MaxInt64 - 1

// CheckOptions checks the options that most stores have. It returns the epoch of the option Floor, or 0 if that is
// empty. If limits are out of range, names is negative, or floor is malformed or its epoch above most, which for most
// stores is [HighestFloor], the error is a [*lease.FieldError] that names the field of the struct Options of a store.
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

// OptionError returns the error for a field of the struct Options of a store, with its value and the bound that the
// value violates, such as "must not be negative". Its code is [lease.ErrOption].
func OptionError(field, value, bound string) error {
	return &lease.FieldError{Field: "Options." + field, Value: value, Bound: bound, Code: lease.ErrOption}
}

// CheckSwap checks the arguments of the method Swap of a [lease.Store]: see [lease.CheckName] and
// [lease.Record.ValidateAfter].
func CheckSwap(name string, old lease.Snapshot, next lease.Record) error {
	if err := lease.CheckName(name); err != nil {
		return err
	}
	return next.ValidateAfter(old.Record)
}
