package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain runs the program instead of the tests in a process that a test has started.
func TestMain(m *testing.M) {
	if os.Getenv("MEMBERLIST_MEMBER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan string
	addr  string
}

func start(t *testing.T, file, name, join string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(os.Args[0], "-name", name, "-join", join, "-file", file), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), "MEMBERLIST_MEMBER=1")
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-read
		_ = p.cmd.Wait()
	})
	p.addr = strings.TrimPrefix(p.await("address "), "address ")
	return p
}

func (p *process) await(prefix string) string {
	p.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line, open := <-p.lines:
			p.t.Log(p.name, line)
			if strings.HasPrefix(line, prefix) {
				return line
			}
			if !open {
				p.t.Fatalf("%s ended, and did not print %q", p.name, prefix)
			}
		case <-limit:
			p.t.Fatalf("%s did not print %q in a minute", p.name, prefix)
		}
	}
}

func cut(a, b *process) {
	fmt.Fprintln(a.stdin, "cut", b.addr)
	fmt.Fprintln(b.stdin, "cut", a.addr)
}

// awaitDown waits until the process has ended with the exit code of the decision Down.
func (p *process) awaitDown() {
	p.t.Helper()
	p.await("goes down")
	for range p.lines {
	}
	if err := p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != 3 {
		p.t.Errorf("%s ended with %v, want exit code 3", p.name, err)
	}
}

// TestCut cuts the lowest of three members off, and then cuts the other two from each other.
func TestCut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.db")
	a := start(t, file, "a", "")
	b := start(t, file, "b", a.addr)
	c := start(t, file, "c", a.addr)
	for _, p := range []*process{a, b, c} {
		p.await("sees a b c without ")
	}

	cut(a, b)
	cut(a, c)
	first := b.await("survives ")
	if second := c.await("survives "); second != first {
		t.Errorf("b %s, and c %s: the tokens must be equal", first, second)
	}
	a.awaitDown()

	for _, p := range []*process{b, c} {
		p.await("sees b c without ")
	}
	cut(b, c)
	if second := b.await("survives "); second <= first {
		t.Errorf("b first %s, and then %s: the token must be newer", first, second)
	}
	c.awaitDown()
}
