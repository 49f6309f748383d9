//go:build !race

package holder

const underRace = false
