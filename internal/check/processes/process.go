package processes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A Process is a copy of this program that does something else, because a variable is set in its
// environment.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// Start starts a copy with one more variable, and returns when the copy has called [Ready].
func Start(variable string) (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(exe), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variable)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = diesWithParent()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process dies with the thread that started it
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_, _ = p.cmd.Process.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != ready {
		p.Kill()
		return nil, fmt.Errorf("processes: a process says %q, %v", line, err)
	}
	return p, nil
}

const ready = "ready\n"

// Ready tells the parent process that this process is ready. The context ends when the parent has
// ended, or wants this process to end.
func Ready() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Print(ready)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}

// Kill kills the process, even if it is stopped or has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.stdin.Close()
}

// End asks the process to end, and kills it if it does not.
func (p *Process) End() error {
	_ = p.Continue()
	p.stdin.Close()
	select {
	case <-p.ended:
		return nil
	case <-time.After(20 * time.Second):
		p.Kill()
		return fmt.Errorf("processes: process %d did not end when it was told to", p.cmd.Process.Pid)
	}
}
