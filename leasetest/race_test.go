//go:build race

package leasetest

// raced reports whether the race detector runs.
const raced = true
