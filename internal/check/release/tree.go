package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// A tree is a checkout whose modules require each other at one version.
type tree struct {
	folder  string
	version string
	modules []*mod // each module comes after the modules that it requires
}

// A mod is one module of a tree.
type mod struct {
	path   string // such as github.com/fencedlease/lease/pglease
	folder string // within the tree, such as pglease; "." for the root
	file   *modfile.File
	lines  []string // the lines of go.sum for the modules that require this module
}

// tag returns the name of the git tag for the module.
func (m *mod) tag(version string) string {
	return strings.TrimPrefix(path.Join(m.folder, version), "./")
}

// unpublished has the folders of the modules that get no tag. They hold only tests, measurements and
// programs to copy.
var unpublished = []string{
	"adapters/controllerruntime/managertest", "azlease/azuretest", "blobtest/sdktest", "etcdlease/etcdtest", "kubelease/elector26",
	"majority/examples/memberlist", "memory/bench", "model", "natslease/natstest", "pglease/pqtest", "redislease/locktest",
}

// published reports whether a release has a tag for the module. A module in a folder "internal" has none.
func (m *mod) published() bool {
	return !slices.Contains(unpublished, m.folder) && !slices.Contains(strings.Split(m.folder, "/"), "internal")
}

// makeTree copies a checkout into a new folder and gives all modules the version. makeTree copies
// the files that git tracks or would add, and changes the documents to documents of a release.
func makeTree(checkout, folder, version string) (*tree, error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Build(version) != "" {
		return nil, fmt.Errorf("-version is %q, and must be of the form v1.2.3", version)
	}
	if folder == "" {
		return nil, fmt.Errorf("-out is missing: give a folder that does not exist")
	}
	if _, err := os.Stat(folder); err == nil {
		return nil, fmt.Errorf("-out is %s, and must not exist", folder)
	}
	files, err := list(checkout)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := copyFile(filepath.Join(checkout, file), filepath.Join(folder, file)); err != nil {
			return nil, err
		}
	}
	t := &tree{folder: folder, version: version}
	if err := t.documents(files); err != nil { // first, because the sums of a module include its documents
		return nil, err
	}
	if t.modules, err = modules(folder, files); err != nil {
		return nil, err
	}
	for _, m := range t.modules {
		if err := t.release(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return t, nil
}

// documents changes the documents of the tree to documents of a release. The error names all
// documents that would still be wrong in a release.
func (t *tree) documents(files []string) error {
	var wrong []error
	for _, file := range files {
		if path.Ext(file) != ".md" {
			continue
		}
		name := filepath.Join(t.folder, file)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		released, err := releaseDocument(string(text), path.Join(rootPath, moduleOf(files, file)), t.version)
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

// moduleOf returns the folder of the module that a file belongs to.
func moduleOf(files []string, file string) string {
	folder := path.Dir(file)
	for folder != "." && !slices.Contains(files, path.Join(folder, "go.mod")) {
		folder = path.Dir(folder)
	}
	return folder
}

// list returns the files of a checkout, without deleted files, as slash-separated paths.
func list(checkout string) (files []string, err error) {
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = checkout
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", checkout, err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(checkout, file)); err == nil {
			files = append(files, file)
		}
	}
	return files, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// modules reads the modules of a tree, and orders them.
func modules(folder string, files []string) (ordered []*mod, err error) {
	all := map[string]*mod{}
	var paths []string
	for _, file := range files {
		if path.Base(file) != "go.mod" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		f, err := modfile.Parse(file, data, nil)
		if err != nil {
			return nil, err
		}
		m := &mod{path: f.Module.Mod.Path, folder: path.Dir(file), file: f}
		all[m.path], paths = m, append(paths, m.path)
	}
	slices.Sort(paths)
	state := map[string]int{} // 1 while the requirements of the module are visited, 2 after that
	var visit func(p string) error
	visit = func(p string) error {
		switch m := all[p]; {
		case m == nil || state[p] == 2:
			return nil
		case state[p] == 1:
			return fmt.Errorf("%s requires itself", p)
		default:
			state[p] = 1
			for _, r := range m.file.Require {
				if err := visit(r.Mod.Path); err != nil {
					return err
				}
			}
			state[p] = 2
			ordered = append(ordered, m)
		}
		return nil
	}
	for _, p := range paths {
		if err := visit(p); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// module returns the module with a path, or nil.
func (t *tree) module(p string) *mod {
	i := slices.IndexFunc(t.modules, func(m *mod) bool { return m.path == p })
	if i < 0 {
		return nil
	}
	return t.modules[i]
}

// release changes a module so that it requires the other modules at the version, with their sums,
// and has no replace lines. release must already have changed the modules that m requires.
func (t *tree) release(m *mod) error {
	sums := map[string]bool{}
	sumFile := filepath.Join(t.folder, m.folder, "go.sum")
	old, err := os.ReadFile(sumFile)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(old)) {
		sums[line] = true
	}
	for _, r := range slices.Clone(m.file.Require) {
		other := t.module(r.Mod.Path)
		if other == nil {
			continue
		}
		if err := m.file.AddRequire(r.Mod.Path, t.version); err != nil {
			return err
		}
		if m.published() && !other.published() {
			return fmt.Errorf("it requires %s, which a release has no tag for", other.path)
		}
		lines, err := t.sums(other)
		if err != nil {
			return err
		}
		for _, line := range lines {
			sums[line] = true
		}
	}
	for _, r := range slices.Clone(m.file.Replace) {
		if t.module(r.Old.Path) == nil {
			return fmt.Errorf("%s is replaced, and is no module of the repository", r.Old.Path)
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
	if err := os.WriteFile(filepath.Join(t.folder, m.folder, "go.mod"), data, 0o644); err != nil {
		return err
	}
	if len(sums) > 0 {
		var lines []string
		for line := range sums {
			lines = append(lines, line)
		}
		slices.Sort(lines)
		if err := os.WriteFile(sumFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
			return err
		}
	}
	if m.folder == "." {
		return nil
	}
	// A published module must contain its license. The go command also adds the license of the root
	// to a nested module that it gets from git.
	return copyFile(filepath.Join(t.folder, "LICENSE"), filepath.Join(t.folder, m.folder, "LICENSE"))
}

// zip writes the zip file of a module, as module proxies serve it.
func (t *tree) zip(w io.Writer, m *mod) error {
	return modzip.CreateFromDir(w, module.Version{Path: m.path, Version: t.version}, filepath.Join(t.folder, m.folder))
}

// sums returns the lines of go.sum for a module that the method release has changed. sums computes
// the lines only once, because nearly every module requires the root module.
func (t *tree) sums(m *mod) (lines []string, err error) {
	if m.lines != nil {
		return m.lines, nil
	}
	f, err := os.CreateTemp("", "release*.zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := t.zip(f, m); err != nil {
		return nil, err
	}
	hash, err := dirhash.HashZip(f.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	goMod, err := os.ReadFile(filepath.Join(t.folder, m.folder, "go.mod"))
	if err != nil {
		return nil, err
	}
	modHash, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	if err != nil {
		return nil, err
	}
	m.lines = []string{
		fmt.Sprintf("%s %s %s\n", m.path, t.version, hash),
		fmt.Sprintf("%s %s/go.mod %s\n", m.path, t.version, modHash),
	}
	return m.lines, nil
}

// proxy writes the modules with a tag into a folder in the layout of a module proxy, for
// GOPROXY=file://FOLDER.
func (t *tree) proxy(folder string) error {
	for _, m := range t.modules {
		if !m.published() {
			continue
		}
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			return err
		}
		dir := filepath.Join(folder, filepath.FromSlash(escaped), "@v")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		var archive bytes.Buffer
		if err := t.zip(&archive, m); err != nil {
			return err
		}
		goMod, err := os.ReadFile(filepath.Join(t.folder, m.folder, "go.mod"))
		if err != nil {
			return err
		}
		for name, data := range map[string][]byte{
			"list":              []byte(t.version + "\n"),
			t.version + ".info": []byte(`{"Version":"` + t.version + `"}`),
			t.version + ".mod":  goMod,
			t.version + ".zip":  archive.Bytes(),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
