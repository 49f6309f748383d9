// Package stale declares the error of a write with a stale fencing token. Package session tests for it, and
// does not import package fencing, because fencing imports net/http.
package stale

import "errors"

// Err is the variable ErrStale of package fencing.
var Err = errors.New("stale fencing token")
