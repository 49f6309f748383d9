//go:build unix

package sqlitelease_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/sqlitelease"
)

// fill writes new names until it cannot, makes room, and goes on with the same store. The limit is the
// size of the file system if it has a file "ballast", and otherwise one for the files of this process.
func fill(path string) error {
	ballast := filepath.Join(filepath.Dir(path), "ballast")
	room := func() error { return os.Remove(ballast) }
	if _, err := os.Stat(ballast); err != nil {
		var old syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			return err
		}
		limit := syscall.Rlimit{Cur: 1 << 20, Max: old.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		room = func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old) }
	}
	s, err := sqlitelease.Open(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	written := 0
	for ; err == nil; written++ {
		if written == 10000 {
			return fmt.Errorf("%d names were written, and there is still room", written)
		}
		name := fmt.Sprintf("full/%d/%s", written, strings.Repeat("x", 800))
		_, err = s.Authority().Do(ctx, name, shorthand.Acquire(idA, lease.Infinite))
	}
	written-- // the last one failed
	if !strings.Contains(err.Error(), "free space") && !strings.Contains(err.Error(), "make room") {
		return fmt.Errorf("after %d names: %w", written, err)
	}
	if err := room(); err != nil {
		return err
	}
	for i := range 2 { // the store that is open, and another one
		name := fmt.Sprint("after/", i)
		if _, err := s.Authority().Do(ctx, name, shorthand.Acquire(idA, time.Minute)); err != nil {
			return err
		}
		kept := 0
		for _, err := range s.List(ctx, "full/") {
			if err != nil {
				return err
			}
			kept++
		}
		if kept < written {
			return fmt.Errorf("%d leases of %d are kept", kept, written)
		}
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = sqlitelease.Open(path, nil); err != nil {
			return err
		}
	}
	fmt.Println("kept", written)
	return s.Close()
}

// runFill runs a child process, which fills the disk with leases in the file at path.
func runFill(t *testing.T, cmd *exec.Cmd, path string) {
	t.Helper()
	cmd.Env = append(os.Environ(), childVariable+"=fill "+path)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "kept ") || string(out) == "kept 0\n" {
		t.Errorf("%v: %.300s", err, out)
	}
	t.Logf("%.300s", out)
}

// If the file cannot grow, the error says so, earlier grants are kept, and the store goes on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	runFill(t, exec.CommandContext(t.Context(), os.Args[0]), newPath(t))
}

// The same holds for a file system that is full. The test is skipped if this process must not mount one.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const script = `mount -t tmpfs -o size=1m none "$0"`
	if out, err := exec.Command("unshare", "-m", "sh", "-c", script, dir).CombinedOutput(); err != nil {
		t.Skipf("only a process that may mount can have a small file system: %v: %s", err, out)
	}
	const ballast = ` && head -c 300000 /dev/zero >"$0/ballast" && exec "$1"`
	runFill(t, exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script+ballast, dir, os.Args[0]), filepath.Join(dir, "leases.db"))
}
