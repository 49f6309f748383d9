package main_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/fencedlease/lease/sqlitelease" // the SQL driver
)

// The first command of README.md works in one terminal and waits in the next one. After the first is
// killed, the second works with a newer token.
func TestReadmeCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sh\n\\(cd sqlitelease && go install \\./cmd/lease\\)\n(.*?)```").FindSubmatch(readme)
	if found == nil {
		t.Fatal("README.md does not have the command")
	}
	dir := t.TempDir()
	small := filepath.Join(dir, "lease")
	if out, err := exec.Command("go", "build", "-o", small, "github.com/fencedlease/lease/sqlitelease/cmd/lease").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := strings.ReplaceAll(string(found[1]), "$HOME/", dir+"/")
	begin := func(out string) *exec.Cmd {
		f, err := os.Create(filepath.Join(dir, out))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := exec.Command("sh", "-c", "set -e\n"+text)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LEASE_DURATION=3s")
		cmd.Stdout, cmd.Stderr = f, f
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); _ = cmd.Wait() })
		return cmd
	}
	said := func(out string) string {
		data, _ := os.ReadFile(filepath.Join(dir, out))
		return string(data)
	}
	first := begin("first")
	eventually(t, "the first works", 20*time.Second, func() bool { return strings.Contains(said("first"), "token") })
	begin("second")
	time.Sleep(5 * time.Second) // longer than the lease lasts without a renewal
	if got := said("second"); strings.Contains(got, "token") {
		t.Errorf("both work: %q", got)
	}
	_ = syscall.Kill(-first.Process.Pid, syscall.SIGKILL)
	eventually(t, "the second works", 20*time.Second, func() bool { return strings.Contains(said("second"), "token") })
	who, second, _ := strings.Cut(said("second"), "\n")
	if second <= said("first") || !strings.Contains(who, `has the lease "report" for `) {
		t.Errorf("%q after %q", said("second"), said("first"))
	}
}

// A file that cannot be used is named, with what to do.
func TestFileErrors(t *testing.T) {
	for store, want := range map[string]string{
		"file:/no/such/folder/leases.db": "the folder must exist",
		"file:" + t.TempDir():            "not a regular file",
	} {
		if _, stderr, code := run(t, store, "run", "x", "--", "true"); code != 69 || !strings.Contains(stderr, want) || strings.Contains(stderr, "server") {
			t.Errorf("%s: %d, %s", store, code, stderr)
		}
	}
	if _, stderr, code := run(t, "file:/no/such/leases.db", "ls"); code != 69 || !strings.Contains(stderr, "no folder /no/such") {
		t.Errorf("%d, %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "leases.db")
	for _, command := range []string{"ls", "show x", "watch x", "break x -grace 1s -yes"} {
		_, stderr, code := run(t, "file:"+file, strings.Fields(command)...)
		if _, err := os.Stat(file); code != 69 || !strings.Contains(stderr, "no file "+file) || err == nil {
			t.Errorf("%s: %d, %s", command, code, stderr)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "file:"+link, "ls"); code != 69 || !strings.Contains(stderr, "is a symbolic link to a file that does not exist") {
		t.Errorf("%d, %s", code, stderr)
	}
	if _, stderr, code := run(t, "file:"+file, "run", "x", "--", "true"); code != 0 {
		t.Fatal(stderr)
	}
	w := watch(t, "file:"+file, "x")
	w.next()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if l := w.next(); l != "" {
		t.Errorf("line %q", l)
	}
	if w.end(); w.cmd.ProcessState.ExitCode() != 69 || !strings.Contains(w.stderr.String(), "start it again") {
		t.Errorf("%v, %s", w.cmd.ProcessState, w.stderr.String())
	}
	lost := filepath.Join(t.TempDir(), "lost.db")
	if _, stderr, code := run(t, "file:"+lost, "run", "x", "--", "sh", "-c", `rm "$0"; sleep 20`, lost); code != 76 || !strings.Contains(stderr, "the file "+lost+" was deleted") {
		t.Errorf("%d, %s", code, stderr)
	}
	if _, stderr, code := run(t, "file://leases.db", "ls"); code != 64 || !strings.Contains(stderr, "file:PATH") {
		t.Errorf("%d, %s", code, stderr)
	}
}

// The command refuses the database of another program, and leaves it as it was.
func TestForeignFile(t *testing.T) {
	for _, mode := range []string{"delete", "wal"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "app.db")
		db, err := sql.Open("sqlite", file)
		if err == nil {
			_, err = db.Exec("pragma journal_mode=" + mode + "; create table lease (expires int)")
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(file)
		for _, command := range []string{"ls", "show x", "watch x", "break x -grace 1s -yes", "run x -- true"} {
			_, stderr, code := run(t, "file:"+file, strings.Fields(command)...)
			after, _ := os.ReadFile(file)
			if files, _ := os.ReadDir(dir); code != 69 || !strings.Contains(stderr, "a database of another program, with lease") || !bytes.Equal(after, before) || len(files) != 1 {
				t.Errorf("%s, %s: %d, %s, %v", mode, command, code, stderr, files)
			}
		}
	}
}

// A damaged record is a fault of the store, and not of the command line.
func TestDamagedRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.db")
	for _, command := range []string{"run x -- true", "bench -time 1ms -parallel 1"} {
		if _, stderr, code := run(t, "file:"+file, strings.Fields(command)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec("update lease set record = '{'")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"run x -- true", "run -wait 1s x -- true", "show x", "watch x", "break x -grace 1s -yes", "bench"} {
		if _, stderr, code := run(t, "file:"+file, strings.Fields(command)...); code != 69 || !strings.Contains(stderr, "restore the record") {
			t.Errorf("%s: %d, %s", command, code, stderr)
		}
	}
}

// A signal ends lease bench, and leaves no lease locked: neither that of its first half nor those of the second.
func TestBenchInterrupted(t *testing.T) {
	for i, c := range []struct{ time, name string }{{"1m", "one"}, {"1m", "one"}, {"1m", "one"}, {"3s", "7"}} {
		bench := start(t, url, "bench", "-duration", "1m", "-time", c.time)
		eventually(t, "it runs", 9*time.Second, func() bool {
			out, _, _ := run(t, url, "ls", "lease-bench/"+c.name)
			return strings.Contains(out, "leased")
		})
		_ = bench.Process.Signal(syscall.SIGTERM)
		_ = bench.Wait()
		if code := bench.ProcessState.ExitCode(); code != 143 {
			t.Errorf("%d: exit code %d", i, code)
		}
		if out, stderr, _ := run(t, url, "ls", "lease-bench/"); strings.Contains(out, "leased") {
			t.Errorf("%d: %s%s", i, out, stderr)
		}
	}
}
