package enginetest

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

// A Process is a child process that never outlives this process.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// startCopy starts a copy of this program with an environment variable that tells the copy what to do. It
// returns when the copy has called [Ready].
func startCopy(variable string) (*Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p, err := StartCommand(cmd)
	if err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != ready {
		p.Kill()
		return nil, fmt.Errorf("enginetest: a process says %q, %v", line, err)
	}
	return p, nil
}

// StartCommand starts a command. Its Stdin must not be set, and its output must go to files or pipes. On
// Linux, the command dies with this process, unless cmd.SysProcAttr is set.
func StartCommand(cmd *exec.Cmd) (p *Process, err error) {
	p = &Process{cmd: cmd, ended: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = diesWithParent()
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process dies with the operating system thread that started it
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
	return p, nil
}

const ready = "ready\n"

// Ready tells the parent process that this process is ready. The context ends when the parent exits or calls
// End.
func Ready() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Print(ready)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}

// Pause stops the process for the time d.
func (p *Process) Pause(d time.Duration) error {
	if err := p.Stop(); err != nil {
		return err
	}
	time.Sleep(d) // in real time, because a process cannot run in a synctest bubble
	return p.Continue()
}

// Pid returns the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill kills the process, even if it is stopped or has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.stdin.Close()
}

// End tells the process to end, and kills it if it has not ended after 20 s.
func (p *Process) End() error {
	_ = p.Continue()
	p.stdin.Close()
	select {
	case <-p.ended:
		return nil
	case <-time.After(20 * time.Second):
		p.Kill()
		return fmt.Errorf("enginetest: process %d did not end when it was told to", p.Pid())
	}
}
