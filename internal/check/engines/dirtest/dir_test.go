//go:build linux

// Package dirtest tests the store of examples/dirlease while its processes are killed and suspended, and with the
// command.
package dirtest

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/cli"
	"github.com/fencedlease/lease/examples/dirlease"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

func TestMain(m *testing.M) {
	if os.Getenv("DIRTEST_COMMAND") != "" {
		cli.Main()
	}
	enginetest.Main(m, func(dir string) (lease.Authority, error) {
		s, err := dirlease.Open(dir)
		return s.Authority(), err
	}, nil)
}

func open(t testing.TB, dir string) enginetest.Store {
	s, err := dirlease.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestHistories(t *testing.T) {
	linearize.TestHistories(t, enginetest.At(t.TempDir(), 4), open, &linearize.TestOptions{
		Workload: linearize.Workload{Term: 100 * time.Millisecond}, // some requests wait for a disk
	})
}

// There is no server that a test could harm. Instead, it does what a process does that is suspended while it has a lock.
func TestHolders(t *testing.T) {
	target := enginetest.At(t.TempDir(), 4)
	target.Harm = func(r *rand.Rand) string {
		lock, err := os.OpenFile(filepath.Join(target.Endpoints[0], t.Name()+".lease.lock"), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			t.Error(err)
			return "nothing"
		}
		defer lock.Close() // unlocks
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		return "a process has the lock"
	}
	enginetest.TestHolders(t, target, nil)
}

// Two commands use the same store, one after the other.
func TestCommand(t *testing.T) {
	url := "dir:" + t.TempDir()
	for _, want := range []string{"00000000000000000001", "00000000000000000002"} {
		cmd := exec.Command(os.Args[0], "run", "-q", "report", "--", "sh", "-c", "echo $LEASE_TOKEN")
		cmd.Env = append(os.Environ(), "DIRTEST_COMMAND=1", "LEASE_STORE="+url)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("lease run printed %q, %v; want %s", out, err, want)
		}
	}
}
