package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

// checkout copies the files of the checkout that git tracks or would add into a new folder: all files, or
// those that match the patterns.
func checkout(t *testing.T, patterns ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	const script = `git -c safe.directory='*' ls-files -z --cached --others --exclude-standard -- "$@" |
		tar -c --null --ignore-failed-read -T - | tar -x -C "$0"`
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-o", "pipefail", "-c", script, folder}, patterns...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// A clone is a separate repository. It has a commit with a few packages of the root module, a module that
// gets no tag, and a module made by the test.
type clone struct {
	*testing.T
	folder string
}

func newClone(t *testing.T) *clone {
	t.Helper()
	c := &clone{t, checkout(t, ":(glob)*", ":(glob).ci/*", ":(glob)fencing/*", ":(glob)internal/fields/*", ":(glob)internal/wrap/*",
		":(glob)internal/check/tools/*", ":(glob)internal/check/tools/release/*")}
	c.write("nested/go.mod", "module "+rootPath+"/nested\n\ngo 1.26\n")
	c.write("nested/nested.go", "// Package nested is empty.\npackage nested\n")
	c.write("CHANGELOG.md", "# Changelog\n\n## v0.1.0\n\n- Everything.\n")
	c.must("git", "init", "--quiet", "--initial-branch=main")
	c.commit("lease: begin")
	return c
}

func (c *clone) write(file, text string) {
	c.Helper()
	if err := write(c.folder, map[string][]byte{file: []byte(text)}); err != nil {
		c.Fatal(err)
	}
}

// run runs a command in the clone.
func (c *clone) run(command ...string) (out string, err error) {
	cmd := exec.CommandContext(c.Context(), command[0], command[1:]...)
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(), "REHEARSED=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	text, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

func (c *clone) must(command ...string) string {
	c.Helper()
	out, err := c.run(command...)
	if err != nil {
		c.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

func (c *clone) commit(subject string) {
	c.Helper()
	c.must("git", "add", "--all", ".")
	c.must("git", "commit", "--quiet", "-m", subject)
}

// refuses checks that a command fails, and that its output contains the text in want.
func (c *clone) refuses(want string, command ...string) {
	c.Helper()
	out, err := c.run(command...)
	if err == nil || !strings.Contains(out, want) {
		c.Errorf("%s: %v, without %q:\n%s", strings.Join(command, " "), err, want, out)
	}
}

// edit replaces a text in a file of the clone.
func (c *clone) edit(file, old, text string) {
	c.Helper()
	data, err := os.ReadFile(filepath.Join(c.folder, file))
	if err != nil || !strings.Contains(string(data), old) {
		c.Fatalf("%s does not have %q: %v", file, old, err)
	}
	c.write(file, strings.ReplaceAll(string(data), old, text))
}

// The script .ci/release tags a commit that is not on the branch. The modules in the commit have no replace
// lines, and its documents say how to get a module. After the first release, a change of the API that
// breaks programs has to be announced, in the changelog or by the number of the next version.
func TestScripts(t *testing.T) {
	c := newClone(t)
	if out := c.must(".ci/api"); out != "there is no release to compare with" {
		t.Errorf("before the first release .ci/api says %q", out)
	}
	c.refuses("give one of the form v1.2.3", ".ci/release", "0.1.0")
	c.refuses(`has no section "## v9.9.9"`, ".ci/release", "v9.9.9")
	c.edit("CHANGELOG.md", "## v0.1.0\n", "## Unreleased\n\n- A change.\n\n## v0.1.0\n")
	c.refuses("not committed", ".ci/release", "v0.1.0")
	c.commit("CHANGELOG.md: add a change")
	c.refuses(`under "## Unreleased": move them`, ".ci/release", "v0.1.0")
	c.edit("CHANGELOG.md", "- A change.\n\n", "")
	c.write("new.md", "Nothing is released yet.\n")
	c.commit("new.md: add it")
	c.refuses("new.md: line 1 has", ".ci/release", "v0.1.0")
	c.write("new.md", "Nothing is wrong.\n")
	c.commit("new.md: mend it")
	before := c.must("git", "rev-parse", "HEAD")
	out := c.must(".ci/release", "v0.1.0")
	if after := c.must("git", "rev-parse", "HEAD"); after != before || c.must("git", "status", "--porcelain") != "" {
		t.Errorf("the branch went from %s to %s, or files have changed:\n%s", before, after, out)
	}
	tags := strings.Fields(c.must("git", "tag", "-l"))
	if want := []string{"nested/v0.1.0", "v0.1.0"}; !slices.Equal(tags, want) {
		t.Errorf("the tags are %q, want %q", tags, want)
	}
	if readme := c.must("git", "show", "v0.1.0:README.md"); strings.Contains(readme, "edit -replace") || !strings.Contains(readme, "\n    go get "+rootPath+"@v0.1.0\n") {
		t.Errorf("the README of the release is\n%s", readme)
	}
	for _, folder := range []string{"", "nested/", "internal/check/tools/"} {
		goMod := c.must("git", "show", "v0.1.0:"+folder+"go.mod")
		if strings.Contains(goMod, "replace") || strings.Contains(goMod, "v0.0.0\n") {
			t.Errorf("%s:\n%s", folder, goMod)
		}
	}
	if c.must("git", "rev-parse", "v0.1.0^") != before {
		t.Error("the release is not made of the branch")
	}
	c.refuses("is there already", ".ci/release", "v0.1.0")

	if out := c.must(".ci/api"); out != "" {
		t.Errorf("nothing has changed, and .ci/api says\n%s", out)
	}
	c.edit("fencing/guard.go", "func NewGuard(", "func MakeGuard(")
	c.refuses("NewGuard: removed", ".ci/api")
	c.refuses("choose a new minor version", ".ci/api", "v0.1.1")
	c.must(".ci/api", "v0.2.0")
	c.must(".ci/api", "v1.0.0")
	c.edit("CHANGELOG.md", "# Changelog\n", "# Changelog\n\n## Unreleased\n\n### Incompatible\n\n- `NewGuard` is `MakeGuard`.\n")
	c.must(".ci/api")
	c.must("git", "rm", "-r", "--quiet", "nested")
	c.refuses("nested: removed", ".ci/api", "v0.1.1")
}
