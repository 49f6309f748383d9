package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

const rootPath = "github.com/fencedlease/lease"

// unpublished has the folders of the modules that get no tag, because they hold only tests, measurements
// and programs to copy. A module in a folder "internal" gets none either.
var unpublished = []string{"examples/libraries"}

// A tree is a copy of the checkout whose modules require each other at one version.
type tree struct {
	folder, proxy, version string
	modules                map[string]*mod // by path
}

type mod struct {
	path   string // such as github.com/fencedlease/lease/pglease
	folder string // within the tree, such as pglease; "." for the root
	file   *modfile.File
	begun  bool     // the method release was called for it
	sums   []string // the lines of go.sum for the modules that require it, once it has been changed
}

func (m *mod) tag(version string) string { return path.Join(m.folder, version) }

func (m *mod) isPublished() bool {
	return !slices.Contains(unpublished, m.folder) && !slices.Contains(strings.Split(m.folder, "/"), "internal")
}

// published returns the modules that get a tag, in the order of their paths.
func (t *tree) published() (all []*mod) {
	for _, p := range slices.Sorted(maps.Keys(t.modules)) {
		if m := t.modules[p]; m.isPublished() {
			all = append(all, m)
		}
	}
	return all
}

// release changes the checkout in a folder into the tree of a release.
func release(folder, proxy, version string) (*tree, error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Build(version) != "" {
		return nil, fmt.Errorf("-version is %q, and must be of the form v1.2.3", version)
	}
	t := &tree{folder, proxy, version, map[string]*mod{}}
	var documents []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(file string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path.Base(file) == "go.mod":
			return t.read(file)
		case path.Ext(file) == ".md":
			documents = append(documents, file)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if t.modules[rootPath] == nil {
		return nil, fmt.Errorf("%s does not hold the module %s", folder, rootPath)
	}
	if err := t.documents(documents); err != nil { // first, because the sums of a module include its documents
		return nil, err
	}
	for _, m := range t.modules {
		if err := t.release(m); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tree) read(file string) error {
	data, err := os.ReadFile(filepath.Join(t.folder, file))
	if err != nil {
		return err
	}
	f, err := modfile.Parse(file, data, nil)
	if err != nil {
		return err
	}
	t.modules[f.Module.Mod.Path] = &mod{path: f.Module.Mod.Path, folder: path.Dir(file), file: f}
	return nil
}

// documents changes documents of the branch to documents of a release. The error names all documents that
// would still be wrong in one.
func (t *tree) documents(files []string) error {
	var wrong []error
	for _, file := range files {
		name := filepath.Join(t.folder, file)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		released, err := releaseDocument(string(text), path.Join(rootPath, path.Dir(file)), t.version)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
			continue
		}
		if err := os.WriteFile(name, []byte(released), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(wrong...)
}

// release changes a module so that it requires the other modules at the version, with their sums, and has
// no replace lines. It first changes the modules that m requires.
func (t *tree) release(m *mod) error {
	switch {
	case m.sums != nil:
		return nil
	case m.begun:
		return fmt.Errorf("%s requires itself", m.path)
	}
	m.begun = true
	folder := filepath.Join(t.folder, m.folder)
	sums := map[string]bool{}
	old, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(old)) {
		sums[line] = true
	}
	for _, r := range slices.Clone(m.file.Require) {
		other := t.modules[r.Mod.Path]
		if other == nil {
			continue
		}
		if m.isPublished() && !other.isPublished() {
			return fmt.Errorf("%s requires %s, which a release has no tag for", m.path, other.path)
		}
		if err := errors.Join(t.release(other), m.file.AddRequire(other.path, t.version)); err != nil {
			return err
		}
		for _, line := range other.sums {
			sums[line] = true
		}
	}
	for _, r := range slices.Clone(m.file.Replace) {
		if t.modules[r.Old.Path] == nil {
			return fmt.Errorf("%s replaces %s, which is no module of the repository", m.path, r.Old.Path)
		}
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	data, err := m.file.Format()
	if err != nil {
		return err
	}
	// A published module must contain its license. The go command also adds the license of the root to a
	// nested module that it gets from git.
	license, err := os.ReadFile(filepath.Join(t.folder, "LICENSE"))
	if err != nil {
		return err
	}
	err = write(folder, map[string][]byte{
		"go.mod": data, "go.sum": []byte(strings.Join(slices.Sorted(maps.Keys(sums)), "")), "LICENSE": license,
	})
	if err != nil {
		return err
	}
	return t.publish(m, data)
}

// publish writes a module into the module proxy, and computes its sums.
func (t *tree) publish(m *mod, goMod []byte) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := modzip.CreateFromDir(&archive, module.Version{Path: m.path, Version: t.version}, filepath.Join(t.folder, m.folder)); err != nil {
		return err
	}
	folder := filepath.Join(t.proxy, filepath.FromSlash(escaped), "@v")
	err = write(folder, map[string][]byte{
		"list":              []byte(t.version + "\n"),
		t.version + ".info": []byte(`{"Version":"` + t.version + `"}`),
		t.version + ".mod":  goMod,
		t.version + ".zip":  archive.Bytes(),
	})
	if err != nil {
		return err
	}
	hash, err := dirhash.HashZip(filepath.Join(folder, t.version+".zip"), dirhash.Hash1)
	if err != nil {
		return err
	}
	modHash, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	m.sums = []string{
		fmt.Sprintf("%s %s %s\n", m.path, t.version, hash),
		fmt.Sprintf("%s %s/go.mod %s\n", m.path, t.version, modHash),
	}
	return err
}

// write writes files into a folder, and makes the folder. It leaves out empty files.
func write(folder string, files map[string][]byte) error {
	for name, data := range files {
		if len(data) == 0 {
			continue
		}
		name = filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)); err != nil {
			return err
		}
	}
	return nil
}
