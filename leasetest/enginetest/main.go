package enginetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/fencedlease/lease"
)

// Main is the body of TestMain for tests that use [TestHolders]. It ends the process.
//
// If TestHolders has started the process as a holder, Main competes for a lease instead of running the tests.
// The parameter open is a function that returns the authority for an endpoint of a [Target]. If this
// parameter is nil, the endpoints are URLs for package open.
//
// In any other process, Main runs the tests. The parameter start is nil, or a function that starts what the
// tests share, such as a server. This function can store files in the folder dir, which Main deletes after
// the tests. Main calls the function before the tests, and calls the returned function stop after the tests.
// If the parameter start is nil, Main only runs the tests.
func Main(m *testing.M, open func(endpoint string) (lease.Authority, error), start func(dir string) (stop func(), err error)) {
	if open == nil {
		open = openAuthority
	}
	if hold(open) {
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
