// Package fields has what the packages besides the root one share to check arguments and options.
package fields

import (
	"time"

	"github.com/fencedlease/lease"
)

// MaxLabel is the largest size of a name or an owner, in bytes.
const MaxLabel = 1024

// Missing returns the error for a required argument that is nil. For example, Missing("New.client") is the
// error for the argument client of the function New.
func Missing(argument string) error {
	return &lease.FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: lease.ErrOption}
}

// Duration returns the text of a duration in errors: "infinite" for [lease.Infinite], and otherwise the text
// of the method String, such as "15s".
func Duration(d time.Duration) string { return lease.Grace(d).String() }
