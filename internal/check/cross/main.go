// Cross checks that the packages and tests of modules can be compiled for another system, without
// compiling them.
//
//	go run ./internal/check/cross windows/amd64 . pglease
//
// Cross checks the types in the sources, which is the first step of a compiler. In packages of
// other modules, Cross does not check the bodies of functions. In contrast, "go vet" needs the
// compiled dependencies of a module. With an empty build cache, compiling the dependencies for
// three systems took 36 minutes on two cores.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: cross GOOS/GOARCH FOLDER...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the modules in the folders, and returns the errors of all modules.
func run(target string, folders []string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("cross: target %q is not of the form GOOS/GOARCH", target)
	}
	c, err := newChecker(system, processor)
	if err != nil {
		return err
	}
	var failures []error
	for _, folder := range folders {
		if err := c.module(folder); err != nil {
			failures = append(failures, fmt.Errorf("cross: %s for %s: %w", folder, target, err))
		}
	}
	return errors.Join(failures...)
}
