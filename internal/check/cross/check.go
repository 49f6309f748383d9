package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// checker checks modules for one system. Two modules that depend on the same version of a package
// share the types of the package.
type checker struct {
	system, processor string
	sizes             types.Sizes
	files             *token.FileSet
	shared            map[string]*types.Package // by key
}

func newChecker(system, processor string) (*checker, error) {
	sizes := types.SizesFor("gc", processor)
	if sizes == nil {
		return nil, fmt.Errorf("cross: GOARCH %q is unknown", processor)
	}
	return &checker{system: system, processor: processor, sizes: sizes, files: token.NewFileSet(), shared: map[string]*types.Package{}}, nil
}

// module checks the module in a folder.
func (c *checker) module(folder string) error {
	packages, err := list(folder, c.system, c.processor)
	if err != nil {
		return err
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe} // by import path
	own := 0
	for _, p := range packages {
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // a path that ends in .test is a main program that the go command writes for tests
		}
		if !p.DepOnly {
			own++
		}
		if checked[p.ImportPath], err = c.check(p, checked); err != nil {
			return err
		}
	}
	if own == 0 && len(packages) > 0 {
		return errors.New("no package is of this module")
	}
	return nil
}

// check checks one package. The packages that p imports must already have been checked.
func (c *checker) check(p listed, checked map[string]*types.Package) (*types.Package, error) {
	key := c.key(p, checked)
	if known := c.shared[key]; known != nil {
		return known, nil
	}
	var sources []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		sources = append(sources, f)
	}
	var failures []error
	config := types.Config{
		Sizes:            c.sizes,
		IgnoreFuncBodies: p.DepOnly,
		Importer:         importer{p.ImportMap, checked},
		Error:            func(err error) { failures = append(failures, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	pkg, _ := config.Check(path, c.files, sources, nil)
	if len(failures) > 0 {
		return nil, errors.Join(failures[:min(len(failures), 10)]...)
	}
	c.shared[key] = pkg
	return pkg, nil
}

// key returns the key of a package in c.shared. The key is different if the package has different
// imports, or if the bodies of its functions are checked.
func (c *checker) key(p listed, checked map[string]*types.Package) string {
	var key strings.Builder
	fmt.Fprint(&key, p.Dir, " ", p.ImportPath, " ", p.DepOnly)
	for _, path := range slices.Sorted(slices.Values(p.Imports)) {
		fmt.Fprintf(&key, " %p", checked[path])
	}
	return key.String()
}

// importer finds the packages that one package imports.
type importer struct {
	paths   map[string]string // the path of a package by the path in the source, if the two differ
	checked map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if other, ok := i.paths[path]; ok {
		path = other
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s was not listed", path)
}
