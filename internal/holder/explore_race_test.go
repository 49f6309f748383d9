//go:build race

package holder

// The race detector makes TestExplore ten times slower, and cannot find a race, because a machine
// uses no goroutines.
const underRace = true
