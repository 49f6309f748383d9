package enginetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/fencedlease/lease"
)

// Main is the body of TestMain for tests that use [TestHolders]. It ends the process.
//
// If TestHolders has started the process as a holder, Main only competes for a lease, at the authority that
// open returns for an endpoint of a [Target]. If open is nil, the endpoints are URLs for package open. In any
// other process, Main runs the tests. Unless start is nil, Main calls start before the tests and stop after
// them, for example to run a server with its files in the folder dir.
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
