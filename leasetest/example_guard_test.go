package leasetest_test

import (
	"testing"

	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasetest"
)

// One call tests your own guard against SPEC.md.
func ExampleTestGuard() {
	_ = func(t *testing.T) { // in a file of tests: func TestGuard(t *testing.T)
		leasetest.TestGuard(t, func(t testing.TB) leasetest.Guard { return new(fencing.Guard) },
			&leasetest.Options{Bubble: true})
	}
}
