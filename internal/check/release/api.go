package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// A change is one difference between the exported names of two trees.
type change struct {
	Package    string
	Message    string
	Compatible bool
}

// String returns the change on one line.
func (c change) String() string {
	kind := "incompatible"
	if c.Compatible {
		kind = "compatible"
	}
	return fmt.Sprintf("%s: %s: %s", kind, c.Package, c.Message)
}

// compare returns the changes of the API between two trees. compare covers all modules and packages
// that programs outside of the repository can import.
func compare(before, after string) (changes []change, err error) {
	was, err := load(before)
	if err != nil {
		return nil, err
	}
	is, err := load(after)
	if err != nil {
		return nil, err
	}
	for path, p := range was {
		q := is[path]
		if q == nil {
			changes = append(changes, change{path, "the package was removed", false})
			continue
		}
		for _, c := range apidiff.Changes(p.Types, q.Types).Changes {
			changes = append(changes, change{path, c.Message, c.Compatible})
		}
	}
	for path := range is {
		if was[path] == nil {
			changes = append(changes, change{path, "the package was added", true})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.String(), b.String()) })
	return changes, nil
}

// walk returns the files of a tree that are not in hidden folders, as slash-separated paths.
func walk(folder string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// load type-checks all packages that programs can import, in all modules of a tree.
func load(folder string) (map[string]*packages.Package, error) {
	files, err := walk(folder)
	if err != nil {
		return nil, err
	}
	all, err := modules(folder, files)
	if err != nil {
		return nil, err
	}
	found := map[string]*packages.Package{}
	for _, m := range all {
		if !m.published() {
			continue
		}
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes,
			Dir:  filepath.Join(folder, m.folder),
			// With -trimpath, the build of one tree can reuse what was compiled for the other
			// tree.
			BuildFlags: []string{"-trimpath"},
		}, "./...")
		if err != nil {
			return nil, err
		}
		for _, p := range loaded {
			for _, e := range p.Errors {
				return nil, fmt.Errorf("%s: %w", p.PkgPath, e)
			}
			if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
				found[p.PkgPath] = p
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no packages", folder)
	}
	return found, nil
}

// announced reports whether the number of a version allows incompatible changes since the last
// version.
func announced(last, next string) bool {
	if semver.Major(last) == "v0" && semver.Major(next) == "v0" {
		return semver.Compare(semver.MajorMinor(next), semver.MajorMinor(last)) > 0
	}
	return semver.Compare(semver.Major(next), semver.Major(last)) > 0
}

// listed reports whether the section "Unreleased" of a changelog has a heading "### Incompatible".
func listed(changelog string) bool {
	_, section, _ := strings.Cut(changelog, "\n## Unreleased\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.Contains(section, "\n### Incompatible\n")
}
