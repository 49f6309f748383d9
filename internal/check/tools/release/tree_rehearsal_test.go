package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const version = "v0.1.0"

// A user simulates a computer without the checkout: its GOPATH is empty, and it gets the modules of the
// repository from a module proxy.
type user struct {
	*testing.T
	env []string
}

// newUser makes a user of a release. All other modules come from the module cache of this computer, or else
// from its module proxy.
func newUser(t *testing.T, r *tree) *user {
	t.Helper()
	settings, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	u := &user{t, append(os.Environ(),
		"GOPATH="+t.TempDir(), "GOMODCACHE=", "GOBIN=", "GOWORK=off",
		"GOPROXY="+strings.Join([]string{"file://" + filepath.ToSlash(r.proxy), "file://" + filepath.ToSlash(cache) + "/cache/download", others}, ","),
		"GONOSUMDB="+rootPath+","+rootPath+"/*",
		"GOFLAGS=-modcacherw -trimpath", // so that the test can remove folders, and can reuse compiled packages
	)}
	return u
}

// run runs a command in a folder, and returns what it prints.
func (u *user) run(folder string, command ...string) string {
	u.Helper()
	cmd := exec.CommandContext(u.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = folder, u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// A user with an empty GOPATH can get each module, build its packages, and install its commands and examples.
// The go.sum of the release has what the module needs. With -short, only the root module is tested.
func TestRehearsal(t *testing.T) {
	r, err := release(checkout(t), t.TempDir(), version)
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t, r)
	commands := 0
	for _, folder := range append(unpublished, "pglease", "leasetest/linearize") {
		if r.modules[rootPath+"/"+folder] == nil {
			t.Errorf("there is no module %s", folder)
		}
	}
	for _, m := range r.published() {
		if testing.Short() && m.folder != "." {
			continue
		}
		t.Run("get/"+m.path, func(t *testing.T) {
			u := &user{t, u.env}
			u.run(filepath.Join(r.folder, m.folder), "go", "list", "-deps", "./...")
			own := t.TempDir()
			u.run(own, "go", "mod", "init", "example.org/user")
			u.run(own, "go", "get", m.path+"@"+version)
			if got := strings.TrimSpace(u.run(own, "go", "list", "-m", m.path)); got != m.path+" "+version {
				t.Errorf("the user has %s", got)
			}
			// The list must contain only packages of the module itself, but those of a nested module have
			// the same prefix. It must not contain a package that has only tests, because go list reports
			// an error for it, and a user cannot build it.
			list := u.run(own, "go", "list", "-e", "-f", "{{if and .Module .GoFiles}}{{.Module.Path}} {{.Name}} {{.ImportPath}}{{end}}", m.path+"/...")
			imports := ""
			for line := range strings.Lines(list) {
				at := strings.Fields(line)
				if len(at) != 3 || at[0] != m.path || slices.Contains(strings.Split(at[2], "/"), "internal") {
					continue
				}
				if at[1] == "main" {
					u.run(own, "go", "install", at[2]+"@"+version)
					commands++
				} else {
					imports += "import _ \"" + at[2] + "\"\n"
				}
			}
			if imports != "" {
				if err := write(own, map[string][]byte{"main.go": []byte("package main\n\n" + imports + "\nfunc main() {}\n")}); err != nil {
					t.Fatal(err)
				}
				u.run(own, "go", "get", ".")
				u.run(own, "go", "build", ".")
			}
		})
	}
	if least := map[bool]int{false: 5, true: 1}[testing.Short()]; commands < least {
		t.Errorf("only %d commands were installed", commands)
	}
	t.Run("blobtest", func(t *testing.T) { // the commands of its README
		u, own := &user{t, u.env}, t.TempDir()
		u.run(own, "go", "mod", "init", "example.org/program")
		readme, err := os.ReadFile(filepath.Join(r.folder, "blobtest/README.md"))
		get := "go get " + rootPath + "/blobtest@" + version
		if err != nil || !strings.Contains(string(readme), "\n    "+get+"\n") {
			t.Fatalf("%v, or the README does not have %q", err, get)
		}
		u.run(own, strings.Fields(get)...)
		u.run(own, "go", "run", rootPath+"/blobtest/cmd/blobtest", "-h")
	})
	t.Run("consumer", func(t *testing.T) { // a user's copy of an example, with its test
		u, own := &user{t, u.env}, t.TempDir()
		for _, file := range []string{"consumer.go", "consumer_test.go"} {
			data, err := os.ReadFile(filepath.Join(r.folder, "examples/consumer", file))
			if err == nil {
				err = write(own, map[string][]byte{file: data})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		u.run(own, "go", "mod", "init", "example.org/program")
		u.run(own, "go", "get", rootPath+"@"+version)
		u.run(own, "go", "mod", "tidy")
		u.run(own, "go", "test", ".")
	})
}
