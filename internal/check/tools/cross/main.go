// Cross checks that the packages of modules can be compiled for another system, without compiling them:
//
//	cross windows/amd64 . pglease
//	cross -tests windows/amd64 . pglease       # and their tests
//
// It checks the types in the sources, which is the first step of a compiler, and of other modules not the
// bodies of functions. In contrast, "go vet" needs the compiled dependencies of a module: with an empty
// build cache, compiling them for three systems took 36 minutes on two cores.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("tests", false, "check the tests too")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: cross [-tests] GOOS/GOARCH FOLDER...")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Args()[1:], *tests); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the modules in the folders, and returns the errors of all modules.
func run(target string, folders []string, tests bool) error {
	system, processor, _ := strings.Cut(target, "/")
	var failures []error
	for _, folder := range folders {
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
				packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule,
			Dir:   folder,
			Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
			Tests: tests,
		}, "./...")
		if err == nil && len(loaded) == 0 {
			err = errors.New("no package is of this module")
		}
		packages.Visit(loaded, nil, func(p *packages.Package) {
			for _, bad := range p.Errors {
				err = errors.Join(err, bad)
			}
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("cross: %s for %s: %w", folder, target, err))
		}
	}
	return errors.Join(failures...)
}
