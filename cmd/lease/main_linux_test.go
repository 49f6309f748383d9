package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease/cmd/lease/internal/servers"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// binary is the program, which TestMain builds, and url the store of most tests.
var binary, url string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lease")
	if err == nil {
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "lease")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%v: %s", err, out)
		}
	}
	var stop func()
	if err == nil {
		url, _, stop, err = servers.Redis(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	// A script starts its background jobs with INT and QUIT ignored, and lease would inherit that.
	if signal.Ignored(syscall.SIGINT) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT)
	}
	return m.Run()
}

// run runs lease, or a command that begins with "env", and returns what it prints and its exit code.
func run(t *testing.T, store string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	if len(args) > 0 && args[0] == "env" {
		cmd = exec.Command("env", args[1:]...)
	}
	cmd.Env = append(os.Environ(), "LEASE_STORE="+store)
	if os.Getenv("LEASE_DURATION") == "" {
		cmd.Env = append(cmd.Env, "LEASE_DURATION=3s")
	}
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.WaitDelay = 10 * time.Second
	_ = cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// start starts lease in a process group of its own.
func start(t *testing.T, store string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "LEASE_STORE="+store, "LEASE_DURATION=3s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// The Redis server of the tests keeps no append-only file. The store warns of it where a person or the log of
// a service reads the warning, and not in each run that cron starts.
func TestWarnings(t *testing.T) {
	for args, want := range map[string]bool{
		"run warn -- true": false, "run -wait 9s warn -- true": false, "run -wait forever warn -- true": true, "ls": false, "bench -time 10ms": true,
	} {
		if _, stderr, code := run(t, url, strings.Fields(args)...); code != 0 || strings.Contains(stderr, "append-only") != want {
			t.Errorf("%s: %d, %q, want a warning: %v", args, code, stderr, want)
		}
	}
}

func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// heartbeat is a shell command whose descendant, in a session of its own, ignores SIGTERM and appends
// to a file for as long as it lives and the file's folder exists.
func heartbeat(file string) []string {
	return []string{"sh", "-c", `trap "" TERM; setsid sh -c 'trap "" TERM; while echo x >>"$0"; do sleep 0.02; done' "$0" & wait`, file}
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// dead fails the test if a heartbeat goes on.
func dead(t *testing.T, file string) {
	t.Helper()
	before := size(file)
	time.Sleep(300 * time.Millisecond)
	if after := size(file); after != before {
		t.Errorf("the command still runs: it wrote %d bytes", after-before)
	}
}

func TestExitCodes(t *testing.T) {
	// All cases run at once. With short leases, requests would fail on a busy machine, because they get a sixth of the time.
	t.Setenv("LEASE_DURATION", "30s")
	l, err := net.Listen("tcp", "127.0.0.1:0") // a store that never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	silent := l.Addr().String()
	for _, c := range []struct {
		name, store string
		args        []string
		code        int
		stderr      string // a part of it
	}{
		{"success", url, []string{"run", "x/1", "--", "true"}, 0, ""},
		{"its own", url, []string{"run", "x/2", "--", "sh", "-c", "exit 42"}, 42, ""},
		{"signal", url, []string{"run", "x/3", "--", "sh", "-c", "kill -USR1 $$"}, 138, ""},
		{"not found", url, []string{"run", "x/4", "--", "no-such-command"}, 127, "check its name"},
		{"not executable", url, []string{"run", "x/5", "--", "/etc/passwd"}, 126, "executable"},
		{"a folder", url, []string{"run", "x/5", "--", "/etc"}, 126, "executable"},
		{"no command", url, []string{"run", "x/6"}, 64, "NAME -- COMMAND"},
		{"no subcommand", url, nil, 64, "lease -h"},
		{"flags first", "", []string{"-store", url, "-json", "ls", "none/"}, 0, ""},
		{"a flag of another command first", url, []string{"-grace", "1s", "ls"}, 64, "not defined: -grace"},
		{"no such flag first", url, []string{"-stor=redis://:secret@x", "ls"}, 64, "no flag -stor; see"},
		{"a flag alone", url, []string{"-json"}, 64, "no command; see"},
		{"nearest word", url, []string{"wacth", "x"}, 64, `no command "wacth": did you mean lease watch?`},
		{"nearest short word", url, []string{"sl"}, 64, `"sl"; see lease -h`},
		{"no near word", url, []string{"remove"}, 64, `no command "remove"; see lease -h`},
		{"negative hold", url, []string{"run", "-min-hold", "-1s", "x", "--", "true"}, 64, "-min-hold is -1s"},
		{"no slots", url, []string{"run", "-slots", "0", "x", "--", "true"}, 64, "-slots is 0: it must be from 1 to 10000"},
		{"too many slots", url, []string{"run", "-slots", "10001", "x", "--", "true"}, 64, "from 1 to 10000"},
		{"a long owner", url, []string{"run", "-owner", strings.Repeat("x", 901), "x", "--", "true"}, 64, "-owner has 901 bytes: it must have at most 900"},
		{"an owner that fits a slot", url, []string{"run", "-slots", "2", "-owner", strings.Repeat("x", 900), "x/10", "--", "true"}, 0, ""},
		{"a slot, its own", url, []string{"run", "-slots", "2", "x/9", "--", "sh", "-c", "exit 42"}, 42, ""},
		{"a slot, unreachable", "redis://127.0.0.1:1", []string{"run", "-slots", "2", "x", "--", "true"}, 69, "cannot be used: dial tcp 127.0.0.1:1: connect: connection refused; check its URL"},
		{"a slot, unreachable, waiting", "redis://127.0.0.1:1", []string{"run", "-slots", "2", "-wait", "1s", "x", "--", "true"}, 69, "cannot be used: dial tcp 127.0.0.1:1: connect: connection refused; check its URL"},
		{"a slot, silent, waiting", "redis://" + silent, []string{"run", "-slots", "2", "-wait", "200ms", "x", "--", "true"}, 69, "cannot be used: no answer within 200ms (-wait); check"},
		{"a version and more", url, []string{"version", "x"}, 64, "no arguments"},
		{"bad wait", url, []string{"run", "-wait", "soon", "x", "--", "true"}, 64, "forever"},
		{"no unit", url, []string{"run", "-duration", "30", "x", "--", "true"}, 64, "such as 30s"},
		{"a path", "./x.db", []string{"ls"}, 64, "write file:./x.db"},
		{"short duration", url, []string{"run", "-duration", "1ms", "x", "--", "true"}, 64, "-duration is 1ms: it must be at least 1s"},
		{"short variable", url, []string{"env", "LEASE_DURATION=500ms", binary, "bench"}, 64, "LEASE_DURATION is 500ms: it must be at least 1s"},
		{"bad variable", url, []string{"env", "LEASE_DURATION=soon", binary, "run", "x", "--", "true"}, 64, `LEASE_DURATION is "soon"`},
		{"a flag instead", url, []string{"env", "LEASE_DURATION=soon", binary, "run", "-duration", "3s", "x/8", "--", "true"}, 0, ""},
		{"unused variable", url, []string{"env", "LEASE_DURATION=soon", binary, "ls"}, 0, ""},
		{"no store", "", []string{"ls"}, 64, "LEASE_STORE"},
		{"unknown store", "gopher://x", []string{"ls"}, 64, "unknown store"},
		{"password", "", []string{"ls", "-store", "redis://:secret@x"}, 64, "ps shows"},
		{"password parameter", "", []string{"ls", "-store", "postgres://me@127.0.0.1:1/x?password=secret"}, 64, "ps shows"},
		{"password of a key", "", []string{"ls", "-store", "postgres://127.0.0.1:1,127.0.0.1:2/x?a=b&sslpass%77ord=secret"}, 64, "ps shows"},
		{"password in the environment", "postgres://me@127.0.0.1:1/x?password=secret", []string{"ls"}, 69, "check its URL"},
		{"unreachable", "redis://127.0.0.1:1", []string{"run", "x", "--", "true"}, 69, "check its URL"},
		{"unreachable, waiting", "redis://127.0.0.1:1", []string{"run", "-wait", "1s", "x", "--", "true"}, 69, "cannot be used: dial tcp 127.0.0.1:1: connect: connection refused; check its URL"},
		{"silent, watched", "postgres://u@" + silent + "/x", []string{"watch", "x"}, 69, "no connection"},
		{"unreachable etcd", "etcd://127.0.0.1:1", []string{"show", "x"}, 69, "no answer in time"},
		{"silent, waiting", "redis://" + silent, []string{"run", "-wait", "200ms", "x", "--", "true"}, 69, "cannot be used: no answer within 200ms (-wait); check"},
		{"silent, ended", "nats://" + silent, []string{"env", "timeout", "--preserve-status", "1", binary, "run", "x", "--", "true"}, 143, ""},
		{"nothing to break", url, []string{"break", "x/7", "-grace", "1s", "-yes"}, 1, "nothing to break"},
		{"no terminal", url, []string{"break", "x/7", "-grace", "1s"}, 64, "-yes"},
		{"no folder for a picture", url, []string{"watch", "-o", "/missing/t.svg", "x"}, 1, "-o: "},
		{"bad interval", url, []string{"watch", "-interval", "1ms", "x"}, 64, "at least 10ms"},
		{"two prefixes", url, []string{"ui", "a", "b"}, 64, "at most one PREFIX"},
		{"no port", url, []string{"ui", "-port", "65536"}, 64, "-port is 65536"},
		{"no parallel", url, []string{"bench", "-parallel", "0"}, 64, "at least 1"},
		{"no shell", "", []string{"completion", "fish"}, 64, "bash or zsh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, stderr, code := run(t, c.store, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
			if !strings.Contains(stderr, c.stderr) || strings.Contains(stderr, "secret") || strings.Count(stderr, "\n") > 1 {
				t.Errorf("stderr %q, want one line with %q", stderr, c.stderr)
			}
		})
	}
}

// A store that accepts connections and never answers delays neither the end of -wait nor that by a signal by
// much more than a second. The time runs from the connection on, so that it does not matter how long a busy machine takes to
// start the program.
func TestSilentStore(t *testing.T) {
	for _, store := range []string{"redis://%s", "etcd://%s", "postgres://u@%s/x"} {
		for command, c := range map[string]struct {
			signal  bool
			code    int
			longest time.Duration
		}{
			"run -duration 30s -wait 1s x -- true":               {false, 69, 4 * time.Second},
			"run -duration 30s -wait 1s -slots 2 x -- true":      {false, 69, 4 * time.Second},
			"run -duration 30s -wait forever x -- true":          {true, 143, 3 * time.Second},
			"run -duration 30s -wait forever -slots 2 x -- true": {true, 143, 3 * time.Second},
			"run -duration 30s x -- true":                        {true, 143, 3 * time.Second},
			"ls":                                                 {false, 69, 14 * time.Second},
			" run -duration 30s x -- true":                       {false, 69, 10 * time.Second},
		} {
			t.Run(store+" "+command, func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				cmd := exec.Command(binary, strings.Fields(command)...)
				cmd.Env = append(os.Environ(), "LEASE_STORE="+fmt.Sprintf(store, l.Addr()))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill(); _ = l.Close() })
				conn, err := l.Accept()
				began := time.Now()
				if err == nil {
					defer conn.Close()
				}
				if c.signal {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				_ = cmd.Wait()
				limit.Stop()
				if took, code := time.Since(began), cmd.ProcessState.ExitCode(); err != nil || code != c.code || took > c.longest {
					t.Errorf("%d after %v, %v, want %d within %v: %s", code, took, err, c.code, c.longest, &stderr)
				}
			})
		}
	}
}

// A command that loses its store says so once, in a line that fits.
func TestLostStoreSaysOnce(t *testing.T) {
	store, server, stop, err := servers.Redis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	_, stderr, code := run(t, store, "run", "x", "--", "sh", "-c", `kill -9 "$0"; sleep 20`, fmt.Sprint(server.Pid))
	want := `lease: the lease "x" was lost, and its command was stopped: dial tcp ` + strings.TrimPrefix(store, "redis://") + ": connect: connection refused\n"
	if code != 76 || stderr != want {
		t.Errorf("%d, %q, want %q", code, stderr, want)
	}
}

// Without a terminal, lease run -wait forever says why it cannot acquire the lease: once, however often it tries.
func TestWaitForeverSaysWhy(t *testing.T) {
	for store, want := range map[string]string{"redis://127.0.0.1:1": "dial tcp 127.0.0.1:1: connect: connection refused\n", "nats://127.0.0.1:1": "no servers available"} {
		for _, slots := range []string{"", "-slots 2 "} {
			t.Run(slots+store, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(binary, strings.Fields("run -duration 12s -wait forever "+slots+"x -- true")...)
				cmd.Env = append(os.Environ(), "LEASE_STORE="+store)
				stderr, err := cmd.StderrPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewReader(stderr)
				line, _ := lines.ReadString('\n')
				time.Sleep(5 * time.Second) // for more attempts
				_ = cmd.Process.Signal(syscall.SIGTERM)
				rest, _ := io.ReadAll(lines)
				_ = cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); !strings.HasPrefix(line, "lease: still waiting: ") || !strings.Contains(line, want) || len(rest) > 0 || code != 143 {
					t.Errorf("it says %q, and then %q, and exits with %d", line, rest, code)
				}
			})
		}
	}
}

// Without a terminal, lease run -wait forever says once who has the lease, unless -q is set.
func TestWaitForeverSaysWho(t *testing.T) {
	holding(t, "who")
	holder, _, _ := run(t, url, "show", "-json", "who")
	want := "lease: waiting: " + rows(t, holder)[0].Owner + ` has the lease "who" for `
	for flags, lines := range map[string]int{"": 1, "-q ": 0} {
		args := "env timeout 4 " + binary + " run -wait forever " + flags + "who -- true"
		_, stderr, _ := run(t, url, strings.Fields(args)...)
		if strings.Count(stderr, want) != lines || strings.Count(stderr, "waiting") != lines {
			t.Errorf("%s: %q, want %d lines with %q", args, stderr, lines, want)
		}
	}
}

func TestEnvironmentAndStreams(t *testing.T) {
	out, _, _ := run(t, url, "run", "env", "--", "sh", "-c", `echo "$LEASE_NAME ${#LEASE_TOKEN}"`)
	if out != "env 20\n" {
		t.Errorf("environment: %q", out)
	}
	cron := exec.Command("setsid", "env", "-i", "PATH=/usr/bin:/bin", "LEASE_STORE="+url, binary, "run", "cron", "--", "sh", "-c", "echo $LEASE_NAME")
	if out, err := cron.Output(); err != nil || string(out) != "cron\n" {
		t.Errorf("in the environment of cron: %q, %v", out, err)
	}
	nohup := exec.Command("sh", "-c", `trap "" HUP INT; exec "$0" run nohup -- grep SigIgn /proc/self/status`, binary)
	nohup.Env = append(os.Environ(), "LEASE_STORE="+url)
	if out, err := nohup.Output(); err != nil || string(out) != "SigIgn:\t0000000000000003\n" {
		t.Errorf("ignored signals of the command: %q, %v", out, err)
	}
	in := bytes.Repeat([]byte{0, 255, '\n', 27}, 1<<21) // 8 MiB
	cmd := exec.Command(binary, "run", "cat", "--", "cat")
	cmd.Env, cmd.Stdin = append(os.Environ(), "LEASE_STORE="+url), bytes.NewReader(in)
	if got, err := cmd.Output(); err != nil || !bytes.Equal(got, in) {
		t.Errorf("cat returned %d bytes and %v, want %d and nil", len(got), err, len(in))
	}
}

func TestHeldAndBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "beats")
	holder := start(t, url, append([]string{"run", "held", "--"}, heartbeat(file)...)...)
	eventually(t, "the command runs", 5*time.Second, func() bool { return exists(file) })
	if _, stderr, code := run(t, url, "run", "held", "--", "true"); code != 75 || !strings.Contains(stderr, "has the lease") {
		t.Errorf("a second holder: %d, %s", code, stderr)
	}
	if _, stderr, code := run(t, url, "run", "-wait", "300ms", "held", "--", "true"); code != 75 {
		t.Errorf("a second holder that waits: %d, %s", code, stderr)
	}
	if out, _, code := run(t, url, "ls", "-json", "held"); code != 0 || !strings.Contains(out, `"state":"leased"`) || strings.Contains(out, `"id"`) {
		t.Errorf("ls: %d, %s", code, out)
	}
	if out, stderr, code := run(t, url, "break", "held", "-grace", "2s", "-yes"); code != 0 || !strings.Contains(stderr, "may take 2.5s to stop") {
		t.Errorf("break: %d, %s %s", code, out, stderr)
	}
	if _, stderr, code := run(t, url, "run", "-wait", "20s", "held", "--", "true"); code != 0 || strings.Contains(stderr, "waiting") {
		t.Errorf("after the break: %d, %s", code, stderr)
	}
	dead(t, file)
	_ = holder.Wait()
	if code := holder.ProcessState.ExitCode(); code != 76 {
		t.Errorf("the holder: %d, want 76", code)
	}
}

// With -min-hold, the lease stays held when the command has ended, though it fails, until the time is over or a signal
// comes. With -q, nobody who does not get it says so. The owner is the one of -owner.
func TestMinHold(t *testing.T) {
	began := time.Now()
	const hold = 10 * time.Second // long enough for what follows on a busy machine
	holder := start(t, url, "run", "-min-hold", hold.String(), "-owner", "me", "min", "--", "sh", "-c", "exit 42")
	ended := func(owner string) {
		t.Helper()
		eventually(t, "the lease is held, and the command has ended", 10*time.Second, func() bool {
			out, _, _ := run(t, url, "show", "-json", "min")
			_, err := supervisor(holder.Process)
			return strings.Contains(out, `"owner":"`+owner+`"`) && err != nil
		})
	}
	ended("me")
	for _, args := range []string{"run -q min -- true", "run -q -wait 1s min -- true"} {
		if out, stderr, code := run(t, url, strings.Fields(args)...); code != 75 || out+stderr != "" {
			t.Errorf("%s: %d, %q %q", args, code, out, stderr)
		}
	}
	_ = holder.Wait()
	if code, took := holder.ProcessState.ExitCode(), time.Since(began); code != 42 || took < hold {
		t.Errorf("it ended with %d after %v", code, took)
	}
	if _, stderr, code := run(t, url, "run", "-q", "min", "--", "true"); code != 0 {
		t.Errorf("afterwards: %d, %s", code, stderr)
	}
	holder = start(t, url, "run", "-min-hold", "1m", "-owner", "again", "min", "--", "true")
	ended("again")
	_ = holder.Process.Signal(syscall.SIGTERM)
	_ = holder.Wait()
	if code := holder.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after a signal: %d", code)
	}
	if _, stderr, code := run(t, url, "run", "min", "--", "true"); code != 0 {
		t.Errorf("after the signal: %d, %s", code, stderr)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		if out, stderr, code := run(t, "", arg); code != 0 || !strings.HasPrefix(out, "lease ") || !strings.Contains(out, runtime.Version()) || len(strings.Fields(out)) < 4 {
			t.Errorf("%s: %d, %q %s", arg, code, out, stderr)
		}
	}
}

// A signal that ends a command also ends one that is stopped.
func TestEndsStopped(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		file := filepath.Join(t.TempDir(), "pid")
		holder := start(t, url, "run", "stopped", "--", "sh", "-c", `echo $$ >"$0"; kill -STOP $$; exec sleep 20`, file)
		eventually(t, "the command is stopped", 5*time.Second, func() bool {
			pid, _ := os.ReadFile(file)
			status, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
			return strings.Contains(string(status), "T (stopped)")
		})
		_ = holder.Process.Signal(sig)
		timer := time.AfterFunc(5*time.Second, func() { _ = holder.Process.Kill() })
		_ = holder.Wait()
		timer.Stop()
		if code := holder.ProcessState.ExitCode(); code != 128+int(sig) {
			t.Errorf("%v: code %d, want %d", sig, code, 128+int(sig))
		}
	}
}

// supervisor returns the process ID of the supervisor of a holder.
func supervisor(h *os.Process) (pid int, err error) {
	data, err := exec.Command("sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", h.Pid)).Output()
	if _, scanErr := fmt.Sscan(string(data), &pid); err != nil || scanErr != nil {
		return 0, fmt.Errorf("children %q: %v", data, err)
	}
	return pid, nil
}

// Whatever ends or stops lease, or keeps it from its store, the descendants of its command are dead when
// the next command begins, with a lease as with a slot.
func TestNeverAliveTogether(t *testing.T) {
	for _, slot := range []bool{false, true} {
		neverAliveTogether(t, slot)
	}
}

func neverAliveTogether(t *testing.T, slot bool) {
	args, name := []string{"it", "--"}, "it"
	if slot {
		args, name = []string{"-slots", "1", "it", "--"}, "it/slots/0"
	}
	for _, c := range []struct {
		name string
		harm func(holder, server *os.Process, network *enginetest.Proxy) error
		heal func(holder, server *os.Process) error
		code int // of the holder; -1: it was killed
	}{
		{"killed", func(h, _ *os.Process, _ *enginetest.Proxy) error { return h.Kill() }, nil, -1},
		{"stopped", func(h, _ *os.Process, _ *enginetest.Proxy) error { return h.Signal(syscall.SIGSTOP) },
			func(h, _ *os.Process) error { return h.Signal(syscall.SIGCONT) }, 76},
		{"store stopped", func(_, s *os.Process, _ *enginetest.Proxy) error { return s.Signal(syscall.SIGSTOP) },
			func(_, s *os.Process) error { return s.Signal(syscall.SIGCONT) }, 76},
		{"network cut", func(_, _ *os.Process, network *enginetest.Proxy) error { network.Isolate(); return nil }, nil, 76},
		{"supervisor killed", func(h, _ *os.Process, _ *enginetest.Proxy) error {
			pid, err := supervisor(h)
			return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}, nil, 137},
		// The pipe to the supervisor is full, as after hours of renewals.
		{"supervisor stopped", func(h, _ *os.Process, network *enginetest.Proxy) error {
			pid, err := supervisor(h)
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGSTOP))
			orders, openErr := os.OpenFile(fmt.Sprintf("/proc/%d/fd/3", pid), os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err = errors.Join(err, openErr); err != nil {
				return err
			}
			defer orders.Close()
			_ = orders.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := orders.Write(make([]byte, 1<<21)); !errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("the pipe is not full: %v", err)
			}
			stop := exec.Command(binary, "break", name, "-grace", "2s", "-yes")
			stop.Env = append(os.Environ(), "LEASE_STORE=redis://"+network.Addr())
			return stop.Run()
		}, func(h, _ *os.Process) error { // for the case that it was not killed
			if pid, err := supervisor(h); err == nil {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			return nil
		}, 76},
		// Both are stopped first, so that neither can act when the other is dead.
		{"killed with its supervisor", func(h, _ *os.Process, _ *enginetest.Proxy) error {
			pid, err := supervisor(h)
			return errors.Join(err, h.Signal(syscall.SIGSTOP), syscall.Kill(pid, syscall.SIGSTOP),
				h.Kill(), syscall.Kill(pid, syscall.SIGKILL))
		}, nil, -1},
		{"terminated", func(h, _ *os.Process, _ *enginetest.Proxy) error { return h.Signal(syscall.SIGTERM) }, nil, 0},
	} {
		t.Run(fmt.Sprintf("%s, slot %v", c.name, slot), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, server, stop, err := servers.Redis(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			file := filepath.Join(dir, "beats")
			command := heartbeat(file)
			switch c.name {
			case "terminated": // It ends, and leaves its descendant behind.
				command[2] = strings.NewReplacer(`trap "" TERM; setsid`, `trap "exit 0" TERM; setsid`).Replace(command[2])
			case "killed with its supervisor": // docs/command.md promises only the death of the command itself.
				command[2] = `while echo x >>"$0"; do sleep 0.02; done`
			}
			network := enginetest.NewProxy(t, strings.TrimPrefix(store, "redis://"), nil)
			holder := start(t, "redis://"+network.Addr(), append(append([]string{"run"}, args...), command...)...)
			eventually(t, "the command runs", 5*time.Second, func() bool { return exists(file) })
			if err := c.harm(holder.Process, server, network); err != nil {
				t.Fatal(err)
			}
			next := filepath.Join(dir, "next")
			if c.name == "store stopped" { // Without its store, only the clock ends the command.
				time.Sleep(4 * time.Second)
				dead(t, file)
				if err := c.heal(holder.Process, server); err != nil {
					t.Fatal(err)
				}
			}
			_, stderr, code := run(t, store, append(append([]string{"run", "-wait", "20s"}, args...), "sh", "-c",
				`wc -c <"$0"; sleep 0.3; wc -c <"$0" >"$1"; test "$(wc -c <"$0")" = "$(cat "$1")"`, file, next)...)
			if code != 0 {
				t.Errorf("the next command: %d, %s", code, stderr)
			}
			dead(t, file)
			if c.heal != nil && c.name != "store stopped" {
				if err := c.heal(holder.Process, server); err != nil {
					t.Fatal(err)
				}
			}
			_ = holder.Wait()
			if got := holder.ProcessState.ExitCode(); got != c.code {
				t.Errorf("the holder: %d, want %d", got, c.code)
			}
		})
	}
}

// 6 processes take 10 turns each. mkdir fails if two turns overlap.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	turns := 10
	if testing.Short() {
		turns = 2
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range turns {
				_, stderr, code := run(t, url, "run", "-wait", "5m", "turns", "--", "sh", "-c",
					`mkdir "$0/busy" && sleep 0.01 && echo "$LEASE_TOKEN" >>"$0/tokens" && rmdir "$0/busy"`, dir)
				if code != 0 {
					t.Errorf("a turn: %d, %s", code, stderr)
				}
			}
		})
	}
	all.Wait()
	data, _ := os.ReadFile(filepath.Join(dir, "tokens"))
	tokens := strings.Fields(string(data))
	if len(tokens) != 6*turns {
		t.Errorf("%d turns, want %d", len(tokens), 6*turns)
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Errorf("token %s after %s", tokens[i], tokens[i-1])
		}
	}
}

// As process 1 of a PID namespace, lease ends with the code of its command, and reaps orphans.
func TestProcess1(t *testing.T) {
	args := []string{"--pid", "--fork", "--mount-proc", binary, "run", "one", "--", "sh", "-c",
		`(setsid sh -c 'sleep 0.1' &); sleep 0.5; ! grep -l 'State:.Z' /proc/[0-9]*/status && exit 7`}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), "LEASE_STORE="+url)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("%d, want 7: %s", code, out)
	}
}
