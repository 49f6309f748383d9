//go:build linux

package enginetest_test

import (
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// TestHolders finds planted bugs.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, b := range enginetest.Bugs {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			enginetest.FindBug(t, enginetest.At(start(t).Addr(), 3), b)
		})
	}
}
