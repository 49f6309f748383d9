// Package redisserver starts Redis and Valkey for tests. It needs no client library, so that the modules of all
// tests can use it.
package redisserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// Program is the server program of the tests. The environment variable REDISLEASE_SERVER names another.
const Program = "redis-server"

// Durable has the settings with which a server keeps all acknowledged writes even if it is killed.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// A Server is a Redis server with its own folder.
type Server struct{ *enginetest.Program }

// New starts a server in dir. Settings are arguments such as "--appendonly", "yes", or a file and
// "--sentinel".
func New(dir string, settings ...string) (*Server, error) {
	program := os.Getenv("REDISLEASE_SERVER")
	if program == "" {
		program = Program
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("these tests need %s: apt-get install %s: %w", program, program, err)
	}
	args := slices.Clone(settings)
	if len(args) == 0 || args[len(args)-1] != "--sentinel" {
		args = append(args, "--daemonize", "no", "--save", "", "--maxclients", "2000", "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0")
	}
	p, err := enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		cmd := exec.Command(path, append(args, "--port", port, "--bind", "127.0.0.1", "--dir", dir)...)
		cmd.Dir = dir
		return cmd
	}, func(ctx context.Context, p *enginetest.Program) error {
		info, err := (&Server{p}).Do(ctx, "info", "server")
		if text := fmt.Sprint(info); err == nil && !strings.Contains(text, fmt.Sprintf("\r\nprocess_id:%d\r\n", p.Pid())) {
			err = fmt.Errorf("another server listens on the port: %s", text)
		}
		return err
	})
	return &Server{p}, err
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

// Port returns the port of the server.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr())
	return port
}
