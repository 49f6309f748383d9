// Package redisserver starts Redis and Valkey for tests. It needs no client library, so that the modules of all
// tests can use it.
package redisserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// Program is the server program of the tests. The environment variable REDISLEASE_SERVER names another.
const Program = "redis-server"

// Durable has the settings with which a server keeps all acknowledged writes even if it is killed.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// A Server is a Redis server on a free port of the loopback interface, with its own folder. It ends with the
// tests.
type Server struct {
	*enginetest.Process

	dir, addr string
	settings  []string
}

// New starts a server in dir. Settings are arguments such as "--appendonly", "yes", or a file and
// "--sentinel".
func New(dir string, settings ...string) (*Server, error) {
	addr, err := enginetest.FreeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, addr: addr, settings: settings}
	return s, s.Start()
}

// NewFor starts a server that ends with the test.
func NewFor(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	return s
}

// Start starts the server, and returns when it answers. It may be called again after Kill.
func (s *Server) Start() error {
	program := os.Getenv("REDISLEASE_SERVER")
	if program == "" {
		program = Program
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("these tests need %s: apt-get install %s: %w", program, program, err)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string(nil), s.settings...)
	if s.settings == nil || s.settings[len(s.settings)-1] != "--sentinel" {
		args = append(args, "--daemonize", "no", "--save", "", "--maxclients", "2000", "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0")
	}
	cmd := exec.Command(path, append(args, "--port", s.Port(), "--bind", "127.0.0.1", "--dir", s.dir)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if s.Process, err = enginetest.StartCommand(cmd); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		// Another server may listen on the port.
		info, err := s.Do(context.Background(), "info", "server")
		if err == nil && strings.Contains(fmt.Sprint(info), fmt.Sprintf("\r\nprocess_id:%d\r\n", cmd.Process.Pid)) {
			return nil
		}
		select {
		case <-s.Ended():
			out, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%s ended: %s", program, out)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %v, %v", program, info, err)
		}
	}
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return s.addr }

// Port returns the port of the server.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}
