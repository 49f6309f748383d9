//go:build linux

package enginetest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A program is started at a free address, and again at the same one. If it ends, the error has what it said.
func TestProgram(t *testing.T) {
	t.Parallel()
	says := "echo no such setting; exit 1"
	start := func(addr, _ string) *exec.Cmd {
		if says != "" {
			return exec.Command("sh", "-c", says)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), `ENGINETEST_SERVER="`+addr+`"`)
		return cmd
	}
	if _, err := enginetest.StartProgram(t.TempDir(), start, nil); err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("a program that ends: %v", err)
	}
	says = ""
	p, err := enginetest.StartProgram(t.TempDir(), start, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := p.Addr()
	p.Kill()
	if err := p.Start(); err != nil || p.Addr() != addr {
		t.Errorf("started again at %s: %v", p.Addr(), err)
	}
	defer p.Kill()
	if _, err := (&store{addr: addr}).Load(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}
