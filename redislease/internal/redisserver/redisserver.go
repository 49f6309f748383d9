// Package redisserver starts Redis and Valkey for tests.
package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Program is the server program of the tests. To use another program, such as valkey-server, set
// the environment variable REDISLEASE_SERVER.
const Program = "redis-server"

// A Server is a Redis server on a free port of the loopback interface, with a folder of its own. A
// Server ends when the tests end.
type Server struct {
	dir      string
	port     int
	settings []string
	sentinel bool
	child    *exec.Cmd
	ended    chan struct{}
}

// Durable has the settings with which a server keeps all acknowledged writes even if it is killed.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// New starts a server in dir. The settings are arguments such as "--appendonly", "yes".
func New(dir string, settings ...string) (*Server, error) {
	s := &Server{dir: dir, settings: settings}
	return s, s.startAnywhere()
}

// NewSentinel starts a sentinel with a file of settings.
func NewSentinel(dir, file string) (*Server, error) {
	s := &Server{dir: dir, settings: []string{file, "--sentinel"}, sentinel: true}
	return s, s.startAnywhere()
}

// errPortTaken is the error of Start if another process listens on the port.
var errPortTaken = errors.New("the port is taken")

// startAnywhere starts the server on a free port. If another process takes that port before the
// server does, startAnywhere tries another port.
func (s *Server) startAnywhere() (err error) {
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.Start(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// Start starts the server, and returns when the server answers. Start may be called again after
// Stop.
func (s *Server) Start() error {
	program := os.Getenv("REDISLEASE_SERVER")
	if program == "" {
		program = Program
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("these tests need %s: apt-get install %s: %w", program, program, err)
	}
	attr, err := diesWithParent()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no",
		"--save", "", "--maxclients", "2000", "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0"}
	args = append(args, s.settings...)
	if s.sentinel {
		args = append(s.settings, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir)
	}
	s.child = exec.Command(path, args...)
	s.child.SysProcAttr, s.child.Dir, s.child.Stdout, s.child.Stderr = attr, s.dir, log, log
	s.ended = make(chan struct{})
	started := make(chan error)
	go startAndWait(s.child, started, s.ended)
	if err := <-started; err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			out, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			if bytes.Contains(out, []byte("Address already in use")) {
				return fmt.Errorf("%w: %s", errPortTaken, out)
			}
			return fmt.Errorf("%s ended: %s", program, out)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %v", program, err)
		}
	}
}

// ping asks the server for its process ID. If the server has another process ID than the child,
// ping returns an error, because another server may listen on the port. ping accepts a server that
// requires a password, because such a server does not report its process ID. ping opens a
// connection of its own, because go-redis waits before it dials again.
func (s *Server) ping() error {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 1<<12)
	n, err := io.ReadAtLeast(conn, answer, 7)
	if err != nil || string(answer[:7]) == "-NOAUTH" {
		return err
	}
	if process := fmt.Sprintf("\r\nprocess_id:%d\r\n", s.child.Process.Pid); !bytes.Contains(answer[:n], []byte(process)) {
		return fmt.Errorf("not the server that was started: %q", answer[:n])
	}
	return nil
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port returns the port of the server.
func (s *Server) Port() string { return strconv.Itoa(s.port) }

// Do sends one command over a connection of its own.
func (s *Server) Do(ctx context.Context, args ...any) (any, error) {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer c.Close()
	return c.Do(ctx, args...).Result()
}

// Kill ends the server like a crash.
func (s *Server) Kill() {
	_ = s.child.Process.Kill()
	<-s.ended
}

// Stop ends the server, even if it is paused.
func (s *Server) Stop() { s.Kill() }

// startAndWait runs a child process until it ends. startAndWait locks its goroutine to an OS
// thread, because Linux kills the child when the thread that started the child ends.
func startAndWait(child *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := child.Start()
	started <- err
	if err == nil {
		_ = child.Wait()
	}
	close(ended)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
