package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const version = "v0.1.0"

// A user simulates a computer without the checkout: its GOPATH is empty, and it gets the modules of
// the repository from a module proxy.
type user struct {
	*testing.T
	env []string
}

// newUser makes a user of a release. All other modules come from the module cache of this computer.
// If the cache lacks a module, the module comes from the computer's module proxy.
func newUser(t *testing.T, r *tree) *user {
	t.Helper()
	proxy := t.TempDir()
	if err := r.proxy(proxy); err != nil {
		t.Fatal(err)
	}
	settings, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	u := &user{t, append(os.Environ(),
		"GOPATH="+t.TempDir(), "GOMODCACHE=", "GOBIN=", "GOWORK=off",
		"GOPROXY="+strings.Join([]string{"file://" + filepath.ToSlash(proxy), "file://" + filepath.ToSlash(cache) + "/cache/download", others}, ","),
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

// program makes a module from files of the release, and adds the modules that the files require.
func (u *user) program(r *tree, folder string, files ...string) (own string) {
	u.Helper()
	own = u.TempDir()
	for _, file := range files {
		if err := copyFile(filepath.Join(r.folder, folder, file), filepath.Join(own, file)); err != nil {
			u.Fatal(err)
		}
	}
	u.run(own, "go", "mod", "init", "example.org/program")
	u.run(own, "go", "get", rootPath+"@"+version)
	if strings.HasPrefix(folder, "pglease/") {
		u.run(own, "go", "get", rootPath+"/pglease@"+version)
	}
	u.run(own, "go", "mod", "tidy")
	goMod, err := os.ReadFile(filepath.Join(own, "go.mod"))
	if err != nil {
		u.Fatal(err)
	}
	if text := string(goMod); strings.Contains(text, "replace") || !strings.Contains(text, rootPath+" "+version) {
		u.Errorf("the go.mod of %s is\n%s", folder, text)
	}
	return own
}

// A user with an empty GOPATH can get each module, build its packages and install its commands. The
// programs in the folders examples and in README.md run without a replace line. With -short, the
// test covers only the root module.
func TestRehearsal(t *testing.T) {
	r, err := makeTree(root, filepath.Join(t.TempDir(), "tree"), version)
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t, r)
	commands := 0
	for _, m := range r.modules {
		if m.internal() || testing.Short() && m.folder != "." {
			continue
		}
		t.Run("get/"+m.path, func(t *testing.T) {
			u := &user{t, u.env}
			own := t.TempDir()
			u.run(own, "go", "mod", "init", "example.org/user")
			u.run(own, "go", "get", m.path+"@"+version)
			if got := strings.TrimSpace(u.run(own, "go", "list", "-m", m.path)); got != m.path+" "+version {
				t.Errorf("the user has %s", got)
			}
			// The list must contain only packages of the module itself, but the packages of a
			// nested module have the same prefix. The list must not contain a package that has only
			// tests, because go list reports an error for it, and a user cannot build it.
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
				write(t, filepath.Join(own, "main.go"), "package main\n\n"+imports+"\nfunc main() {}\n")
				u.run(own, "go", "get", ".")
				u.run(own, "go", "build", ".")
			}
		})
	}
	if least := map[bool]int{false: 5, true: 1}[testing.Short()]; commands < least {
		t.Errorf("only %d commands were installed", commands)
	}
	t.Run("quickstart", func(t *testing.T) {
		u := &user{t, u.env}
		own := u.program(r, "examples/quickstart", "main.go")
		want, err := os.ReadFile(filepath.Join(root, "examples/quickstart/output.txt"))
		if err != nil {
			t.Fatal(err)
		}
		// On a slow computer, the times differ, but the events are the same.
		if got := u.run(own, "go", "run", "."); !strings.Contains(got, "bob leads, with token 2\n") || !strings.Contains(got, "is refused") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("consumer", func(t *testing.T) {
		u := &user{t, u.env}
		u.run(u.program(r, "examples/consumer", "consumer.go", "consumer_test.go"), "go", "test", ".")
	})
	t.Run("leader", func(t *testing.T) {
		u := &user{t, u.env}
		u.leads(u.program(r, "examples/leader", "main.go"))
	})
	t.Run("service", func(t *testing.T) {
		u := &user{t, u.env}
		u.serves(u.program(r, "examples/service", "main.go"))
	})
	for name, want := range map[string]string{"cron": "the fourth finds it done\n", "daemon": "an operator breaks the lease", "shards": "carol works on 12"} {
		t.Run(name, func(t *testing.T) {
			u := &user{t, u.env}
			if got := u.run(u.program(r, "examples/"+name, "main.go"), "go", "run", "."); !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout %q", got, want)
			}
		})
	}
	for _, name := range []string{"guarded", "job"} {
		if testing.Short() {
			break
		}
		t.Run(name, func(t *testing.T) {
			u := &user{t, u.env}
			u.complains(u.program(r, "pglease/examples/"+name, "main.go"))
		})
	}
}

// binary builds the program of a folder.
func (u *user) binary(own string) string {
	u.Helper()
	name := filepath.Join(own, "program")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	u.run(own, "go", "build", "-o", name, ".")
	return name
}

// leads checks that the leader program in a folder sends its token.
func (u *user) leads(own string) {
	tokens := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case tokens <- r.Header.Get("Fencing-Token"):
		default:
		}
	}))
	defer service.Close()
	ctx, cancel := context.WithTimeout(u.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.binary(own), "-url", service.URL)
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	select {
	case tok := <-tokens:
		if tok != "00000000000000000001" {
			u.Errorf("the token is %q", tok)
		}
	case <-ctx.Done():
		u.Error("no request came")
	}
	cancel()
	_ = cmd.Wait()
}

// serves checks that the service in a folder accepts a write with a token, and refuses a write with
// an older token.
func (u *user) serves(own string) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		u.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithTimeout(u.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.binary(own), "-addr", address)
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	for _, c := range []struct {
		token string
		want  int
	}{{"00000000000000000002", http.StatusOK}, {"00000000000000000001", http.StatusPreconditionFailed}} {
		if got, err := send(ctx, "http://"+address, c.token); err != nil || got != c.want {
			u.Errorf("a write with token %s: %v, status %d, want %d", c.token, err, got, c.want)
		}
	}
	cancel()
	_ = cmd.Wait()
}

// send sends a write with a token to a service, and repeats the write until the service has
// started.
func send(ctx context.Context, url, token string) (status int, err error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Fencing-Token", token)
		if response, err := http.DefaultClient.Do(r); err == nil {
			return response.StatusCode, response.Body.Close()
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// complains checks that the program in a folder prints what is wrong if there is no database.
func (u *user) complains(own string) {
	ctx, cancel := context.WithTimeout(u.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.binary(own))
	cmd.Env = append(slices.Clone(u.env), "DATABASE_URL=postgres://127.0.0.1:1/none")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		u.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(stderr); !strings.Contains(said, "127.0.0.1:1") && lines.Scan(); {
		said += lines.Text() + "\n"
	}
	cancel()
	_ = cmd.Wait()
	if !strings.Contains(said, "127.0.0.1:1") {
		u.Errorf("it says %q", said)
	}
}
