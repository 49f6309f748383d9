package enginetest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// diesWithParent returns attributes that make the system kill a process when its parent ends.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Stop stops the process and returns when all its threads have stopped.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
		if err != nil {
			return err
		}
		// The line is "pid (command) state ...", and the command may contain any characters.
		if fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])); len(fields) > 0 && fields[0] == "T" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("enginetest: process %d does not stop", p.Pid())
		}
	}
}

// Continue resumes a stopped process.
func (p *Process) Continue() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
