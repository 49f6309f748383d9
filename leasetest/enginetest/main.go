package enginetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/fencedlease/lease"
)

// Main is the body of TestMain for tests that use [TestHolders], and ends the process. It first looks
// whether the process was started as a holder; then it only holds a lease at the authority that open returns
// for an endpoint of a [Target]. Otherwise it runs the tests. If start is not nil, it starts what the tests
// share, such as a server with its files in the folder dir, and stop ends it after the tests.
func Main(m *testing.M, open func(endpoint string) (lease.Authority, error), start func(dir string) (stop func(), err error)) {
	if Hold(open) {
		os.Exit(0)
	}
	os.Exit(func() int {
		if start != nil {
			dir, err := os.MkdirTemp("", "enginetest")
			if err == nil {
				defer os.RemoveAll(dir)
				var stop func()
				if stop, err = start(dir); err == nil {
					defer stop()
				}
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}
