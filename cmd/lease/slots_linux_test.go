package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Of the commands that begin at once with -slots 2, two run. Each learns the name and the token of its slot. What ends one
// of them lets another in: its own end, a break, or the death of lease.
func TestSlots(t *testing.T) {
	dir := t.TempDir()
	file := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	begin := func(i int, args ...string) *exec.Cmd {
		command := heartbeat(file(i))
		command[2] = `echo "$LEASE_NAME $LEASE_TOKEN" >"$0.env"; ` + command[2]
		return start(t, url, append(append([]string{"run", "-slots", "2", "-owner", fmt.Sprint(i)}, args...), append([]string{"s", "--"}, command...)...)...)
	}
	var holders []*exec.Cmd
	for i := range 3 {
		holders = append(holders, begin(i))
	}
	refused := -1
	eventually(t, "two run, and one has ended", 30*time.Second, func() bool {
		running := 0
		for i, h := range holders {
			var status syscall.WaitStatus
			if exists(file(i)) {
				running++
			} else if pid, _ := syscall.Wait4(h.Process.Pid, &status, syscall.WNOHANG, nil); pid > 0 {
				if refused = i; status.ExitStatus() != 75 {
					t.Fatalf("it ended with %d", status.ExitStatus())
				}
			}
		}
		return running == 2 && refused >= 0
	})
	left := (refused + 1) % 3
	if out, stderr, code := run(t, url, "run", "-slots", "2", "s", "--", "true"); code != 75 || !strings.Contains(stderr, `others have all slots of "s" (-slots 2); try`) {
		t.Errorf("a third: %d, %s %s", code, out, stderr)
	}
	if out, stderr, code := run(t, url, "run", "-q", "-slots", "2", "-wait", "1s", "s", "--", "true"); code != 75 || out+stderr != "" {
		t.Errorf("a silent third that waits: %d, %s %s", code, out, stderr)
	}
	seen := map[string]bool{}
	slot := func(i int) string {
		data, _ := os.ReadFile(file(i) + ".env")
		name, token, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
		if !strings.HasPrefix(name, "s/slots/") || len(token) != 20 || seen[name+token] {
			t.Errorf("process %d has %q", i, data)
		}
		seen[name+token] = true
		return name
	}
	first, second := left, 3-left-refused
	slot(first)
	if out, stderr, code := run(t, url, "break", slot(second), "-grace", "2s", "-yes"); code != 0 {
		t.Errorf("break: %d, %s %s", code, out, stderr)
	}
	holders = append(holders, begin(3, "-wait", "30s"))
	eventually(t, "a waiter has the slot that was broken", 30*time.Second, func() bool { return exists(file(3)) })
	_ = holders[second].Wait()
	if code := holders[second].ProcessState.ExitCode(); code != 76 {
		t.Errorf("after the break: %d", code)
	}
	dead(t, file(second))
	slot(3)
	holders = append(holders, begin(4, "-wait", "30s"))
	_ = holders[first].Process.Kill()
	eventually(t, "a waiter has the slot of a process that died", 30*time.Second, func() bool { return exists(file(4)) })
	dead(t, file(first))
	if slot(4); len(seen) != 4 {
		t.Errorf("%d slots and tokens, want 4: %v", len(seen), seen)
	}
}

// A slot stays held for -min-hold. A signal ends a wait for one, and the command that has one.
func TestSlotsHoldAndSignal(t *testing.T) {
	holder := start(t, url, "run", "-slots", "1", "-min-hold", "1m", "-owner", "me", "hold", "--", "true")
	eventually(t, "the command has ended, and the slot is held", 20*time.Second, func() bool {
		out, _, _ := run(t, url, "show", "-json", "hold/slots/0")
		_, err := supervisor(holder.Process)
		return strings.Contains(out, `"owner":"me `) && err != nil
	})
	if _, stderr, code := run(t, url, "run", "-slots", "1", "hold", "--", "true"); code != 75 {
		t.Errorf("while it is held: %d, %s", code, stderr)
	}
	waiter := start(t, url, "run", "-slots", "1", "-wait", "forever", "hold", "--", "true")
	eventually(t, "it is in the queue", 20*time.Second, func() bool {
		out, _, _ := run(t, url, "ls", "hold/waiting/")
		return out != ""
	})
	file := filepath.Join(t.TempDir(), "began")
	running := start(t, url, "run", "-slots", "1", "run", "--", "sh", "-c", `touch "$0"; exec sleep 60`, file)
	eventually(t, "the command runs", 20*time.Second, func() bool { return exists(file) })
	for _, h := range []struct {
		*exec.Cmd
		code int
	}{{waiter, 143}, {holder, 0}, {running, 143}} {
		_ = h.Process.Signal(syscall.SIGTERM)
		_ = h.Wait()
		if code := h.ProcessState.ExitCode(); code != h.code {
			t.Errorf("after TERM: %d, want %d", code, h.code)
		}
	}
	if out, stderr, code := run(t, url, "ls", "hold/"); out != "" || code != 0 {
		t.Errorf("afterwards: %d, %s %s", code, out, stderr)
	}
}
