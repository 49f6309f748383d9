package main_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A job of one or more processes uses its terminal under lease run as it would without.
func TestTerminal(t *testing.T) {
	for _, c := range []struct{ name, keys, job, want string }{
		// Keys come while sh waits for sleep, or is sleep: one that forks just then would not act on them.
		{"Ctrl-C", "\003", `lease run tty -- sh -c 'echo ready; exec sleep 20'`, "code 130"},
		{"reads", "hello\n", `lease run tty -- sh -c 'echo ready; read x; echo "got $x"'`, "got hello"},
		{"Ctrl-Z", "\032", `lease run tty -- sh -c 'echo $$ >$pid; (sleep 0.5; echo ready) & sleep 2; wait; echo woke'`, "woke"},
		{"Ctrl-Z in a pipeline", "\032", `lease run tty -- sh -c 'echo $$ >$pid; (sleep 0.5; echo ready) & sleep 2; wait; echo woke' | cat`, "woke"},
		{"Ctrl-C in a pipeline", "\003", `lease run tty -- sh -c 'trap "echo int" INT; (sleep 0.5; echo ready) & sleep 20; sleep 0.5; exit 3' | (trap "" INT; cat)`, "int\r\ncode 3"},
		{"a pager", "q\n", `lease run tty -- sh -c 'echo ready >&2; seq 100000; echo all' | (read first; read key </dev/tty; tail -n 1; echo "key $key")`, "all\r\nkey q"},
		{"a password", "secret\n", `echo data | lease run tty -- sh -c 'echo ready; read x </dev/tty; echo "got $x and $(cat)"'`, "got secret and data"},
		{"a password and a pager", "secret\nq\n", `lease run tty -- sh -c 'echo ready >&2; read x </dev/tty; echo "got $x"' | (cat; read key </dev/tty; echo "key $key")`, "got secret\r\nkey q"},
		{"tostop", "", `stty tostop; echo data | lease run tty -- cat`, "data\r\ncode 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "script")
			shell := "set -m -o pipefail; export pid=" + file + ".pid; " + c.job + "; echo code $?"
			stops := strings.HasPrefix(c.name, "Ctrl-Z")
			if stops {
				shell += "; grep State /proc/$(cat $pid)/status; fg; echo code $?"
			}
			if err := os.WriteFile(file, []byte(shell), 0o600); err != nil {
				t.Fatal(err)
			}
			out := typeAtTerminal(t, "bash "+file, "ready", c.keys)
			if !strings.Contains(out, c.want) {
				t.Errorf("no %q in %q", c.want, out)
			}
			if stops && !strings.Contains(out, "T (stopped)") || strings.Contains(out, "code 148") != stops { // The shell went on.
				t.Errorf("lease and its command are to stop: %v, %q", stops, out)
			}
		})
	}
}

// typeAtTerminal runs a command at a terminal, types keys after prompt, and returns all output.
func typeAtTerminal(t *testing.T, command, prompt, keys string) string {
	t.Helper()
	cmd := exec.Command("timeout", "60", "script", "-qec", command, "/dev/null")
	cmd.Env = append(os.Environ(), "LEASE_STORE="+url, "LEASE_DURATION=3s", "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	typed := false
	for buf := make([]byte, 4096); ; {
		n, err := stdout.Read(buf)
		out.Write(buf[:n])
		if !typed && strings.Contains(out.String(), prompt) {
			typed = true
			if _, err := io.WriteString(in, keys); err != nil {
				t.Error(err)
			}
		}
		if err != nil { // Without a process on the other side, a pipe or a terminal reads as its end.
			break
		}
	}
	_ = cmd.Wait() // Its exit code is the shell's, which has printed what counts.
	return out.String()
}

// holding starts a holder, and waits until it holds.
func holding(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	holder := start(t, url, "run", name, "--", "sleep", "30")
	eventually(t, name+" is held", 5*time.Second, func() bool {
		out, _, _ := run(t, url, "show", "-json", name)
		return strings.Contains(out, `"leased"`)
	})
	return holder
}

var escape = regexp.MustCompile("\x1b\\[[0-9]+m")

// States have colours at a terminal, unless NO_COLOR is set. The columns align with and without.
func TestColours(t *testing.T) {
	holding(t, "colour/held")
	run(t, url, "run", "colour/free", "--", "true")
	for command, coloured := range map[string]bool{
		"lease ls -all colour/":             true,
		"NO_COLOR=1 lease ls -all colour/":  false,
		"lease ls -all colour/ | cat":       false,
		"NO_COLOR= lease show colour/held":  true,
		"timeout 2 lease watch colour/held": true,
	} {
		out := typeAtTerminal(t, command, "", "")
		if got := strings.Contains(out, "\x1b[32mleased\x1b[39m"); got != coloured || !coloured && escape.MatchString(out) || !strings.Contains(out, "leased") {
			t.Errorf("%s: %q, colours: %v", command, out, coloured)
		}
		lines := strings.Split(escape.ReplaceAllString(out, ""), "\r\n")
		if column := strings.Index(lines[0], "LEFT"); strings.Contains(command, "ls") {
			for _, l := range lines[1:3] {
				if len(l) <= column || l[column-1] != ' ' || l[column] == ' ' {
					t.Errorf("%s: %q is not aligned with %q", command, l, lines[0])
				}
			}
		}
	}
}

// At a terminal, lease break asks, and only "y" or "yes" is consent.
func TestBreakAsks(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"no", "n\n", "not broken"},
		{"enter", "\n", "not broken"},
		{"end", "\004", "not broken"},
		{"yes", "y\n", "is free in"},
		{"free", "y\n", "nothing to break"},
	} {
		name := "ask/" + c.name
		if c.name != "free" {
			holding(t, name)
		}
		out := typeAtTerminal(t, "lease break "+name+" -grace 1s", "[y/N] ", c.keys)
		asked := strings.Contains(out, `has the lease "`+name+`" for `) && strings.Contains(out, "with a grace of 1s? [y/N]")
		if !strings.Contains(out, c.want) || asked == (c.name == "free") {
			t.Errorf("%s: no %q in %q", c.name, c.want, out)
		}
	}
}

// At a terminal, lease run -wait says whom it waits for, and clears the line before the command begins.
func TestWaitShows(t *testing.T) {
	holder := holding(t, "shown")
	time.AfterFunc(3*time.Second, func() { _ = holder.Process.Signal(syscall.SIGTERM) })
	out := typeAtTerminal(t, "lease run -wait 30s shown -- echo begun", "", "")
	if !regexp.MustCompile(`(?s)waiting: \S+ has the lease "shown" for [0-9.]+m?s unless it is renewed.*\r\x1b\[Kbegun`).MatchString(out) {
		t.Errorf("got %q", out)
	}
}

// The completion finds commands and arguments in both shells, and flags, but nothing after "--".
func TestCompletion(t *testing.T) {
	for shell, rest := range map[string]string{"bash": "--norc --noprofile -i", "zsh": "-f -i"} {
		keys := "eval \"$(lease completion " + shell + ")\"\nlease compl\tba\t\nexit\n"
		if shell == "zsh" {
			keys = "autoload -U compinit && compinit -u -D; " + keys
		}
		if out := typeAtTerminal(t, shell+" "+rest, "\x1b[?2004h", keys); !strings.Contains(out, "complete -o default -F _lease") {
			t.Errorf("%s: %q", shell, out)
		}
	}
	for want, words := range map[string][]string{
		"run ls show watch ui break bench completion version": {""},
		"-grace": {"break", "x", "-g"},
		"-store -duration -wait -slots -min-hold -owner -q": {"run", "-"},
		"": {"run", "x", "--", "-"},
	} {
		script := `eval "$("$0" completion bash)"; COMP_WORDS=(lease "$@") COMP_CWORD=$#; _lease; echo "${COMPREPLY[*]}"`
		cmd := exec.Command("bash", append([]string{"-c", script, binary}, words...)...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: %q and %v, want %q", words, out, err, want)
		}
	}
}

// The help of the program and of each command fits on a screen of 24 lines, and explains every flag.
func TestHelp(t *testing.T) {
	calls := [][]string{{"-h"}, {"--help"}, {"help"}, {"-json", "-h"}}
	for _, word := range strings.Fields("run ls show watch ui break bench completion version") {
		calls = append(calls, []string{word, "-h"}, []string{"help", word})
	}
	for _, args := range calls {
		out, _, code := run(t, "", args...)
		if line := regexp.MustCompile(`(?m)^  -\S+( [A-Z]+)? *$`).FindString(out); line != "" {
			t.Errorf("%v: not explained: %s", args, line)
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != 0 || len(lines) > 24 || strings.HasPrefix(out, "usage: lease ") != (len(args) == 2 && args[0] != "-json") {
			t.Errorf("%v: code %d, %d lines:\n%s", args, code, len(lines), out)
		}
		for _, l := range lines {
			if len(l) > 80 {
				t.Errorf("%d columns: %s", len(l), l)
			}
		}
	}
}
