//go:build race

package session

// The race detector makes the exploration ten times slower, and finds nothing in it: a machine knows
// no goroutines.
const underRace = true
