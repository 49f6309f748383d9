package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A Program is a [Server] that runs as a program of its own, at a free address of the loopback interface.
type Program struct {
	*Process
	addr, log string
	command   func(addr, port string) *exec.Cmd
	answers   func(ctx context.Context, p *Program) error
}

// StartProgram starts a server whose files are in the folder dir, and returns when the server answers. The
// parameter command is a function that is called each time the server starts, and returns the command that
// starts the server. The arguments of this function are the address on which the server must listen, such as
// 127.0.0.1:15001, and the port of this address. The output of the command is appended to the file dir/log.
// The parameter answers is a function that tries a request. If this function is nil, a connection counts as
// an answer. If there is no answer within two minutes, or if the program ends, StartProgram returns an error
// with the end of the log. The caller must call Kill at the end of the tests.
func StartProgram(dir string, command func(addr, port string) *exec.Cmd, answers func(context.Context, *Program) error) (*Program, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	if answers == nil {
		answers = func(ctx context.Context, p *Program) error {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", p.addr)
			if err == nil {
				c.Close()
			}
			return err
		}
	}
	p := &Program{addr: addr, log: filepath.Join(dir, "log"), command: command, answers: answers}
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Addr returns the host and port of the server.
func (p *Program) Addr() string { return p.addr }

// Start starts the server again after Kill, and returns when the server answers.
func (p *Program) Start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	_, port, _ := net.SplitHostPort(p.addr)
	cmd := p.command(p.addr, port)
	cmd.Stdout, cmd.Stderr = log, log
	if p.Process, err = StartCommand(cmd); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := p.answers(ctx, p)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended():
			return p.failed("ended", err)
		case <-time.After(10 * time.Millisecond): // in real time, because a server cannot run in a synctest bubble
		}
		if time.Now().After(deadline) {
			p.Kill()
			return p.failed("does not answer", err)
		}
	}
}

func (p *Program) failed(what string, err error) error {
	said, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s %s: %w\n%s", p.cmd.Path, what, err, bytes.TrimSpace(said[max(0, len(said)-4000):]))
}
