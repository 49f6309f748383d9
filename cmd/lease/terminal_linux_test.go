package main_test

import (
	"fmt"
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

func TestTerminal(t *testing.T) {
	for _, c := range []struct{ name, key, command, want string }{
		{"Ctrl-C", "\003", `echo ready; sleep 20`, "code 130"},
		{"reads", "hello\n", `echo ready; read x; echo "got $x"`, "got hello"},
		// The key comes while sh waits for sleep: one that has just forked with vfork cannot be stopped.
		{"Ctrl-Z", "\032", `(sleep 0.5; echo ready) & sleep 2; wait; echo woke`, "woke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shell := fmt.Sprintf("set -m; %s run 'tty/%s' -- sh -c '%s'; echo code $?", binary, c.name, c.command)
			if c.name == "Ctrl-Z" {
				shell += "; fg; echo code $?"
			}
			file := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(file, []byte(shell), 0o600); err != nil {
				t.Fatal(err)
			}
			out := typeAtTerminal(t, "bash "+file, "ready", c.key)
			if !strings.Contains(out, c.want) {
				t.Errorf("no %q in %q", c.want, out)
			}
			if c.name == "Ctrl-Z" && !strings.Contains(out, "code 148") { // The shell went on.
				t.Errorf("lease was not stopped: %q", out)
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
		"run ls show watch break bench completion": {""},
		"-grace":                 {"break", "x", "-g"},
		"-store -duration -wait": {"run", "-"},
		"":                       {"run", "x", "--", "-"},
	} {
		script := `eval "$("$0" completion bash)"; COMP_WORDS=(lease "$@") COMP_CWORD=$#; _lease; echo "${COMPREPLY[*]}"`
		cmd := exec.Command("bash", append([]string{"-c", script, binary}, words...)...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: %q and %v, want %q", words, out, err, want)
		}
	}
}

// The help fits on a screen of 24 lines.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"run", "-h"}} {
		out, _, code := run(t, "", args...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != 0 || len(lines) > 24 {
			t.Errorf("%v: code %d, %d lines:\n%s", args, code, len(lines), out)
		}
		for _, l := range lines {
			if len(l) > 80 {
				t.Errorf("%d columns: %s", len(l), l)
			}
		}
	}
}
