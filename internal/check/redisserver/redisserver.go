// Package redisserver starts Redis and Valkey for tests. It sends commands with the program redis-cli and not with a
// client library, so that the modules of all tests can use it.
package redisserver

import (
	"cmp"
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

// Durable has the settings with which a server keeps all acknowledged writes even if it is killed.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// A Server is a Redis server with its own folder.
type Server struct {
	*enginetest.Program
	client string // the program redis-cli
}

// New starts a server in dir. Settings are arguments such as "--appendonly", "yes", or a file and
// "--sentinel". The program is redis-server, or the one that the environment variable REDISLEASE_SERVER names.
func New(dir string, settings ...string) (*Server, error) {
	program := cmp.Or(os.Getenv("REDISLEASE_SERVER"), "redis-server")
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("these tests need %s: apt-get install %s: %w", program, program, err)
	}
	s := &Server{client: strings.TrimSuffix(path, "-server") + "-cli"}
	args := slices.Clone(settings)
	if len(args) == 0 || args[len(args)-1] != "--sentinel" {
		args = append(args, "--daemonize", "no", "--save", "", "--maxclients", "2000", "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0")
	}
	s.Program, err = enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		cmd := exec.Command(path, append(args, "--port", port, "--bind", "127.0.0.1", "--dir", dir)...)
		cmd.Dir = dir
		return cmd
	}, func(ctx context.Context, p *enginetest.Program) error {
		s.Program = p
		info, err := s.Do(ctx, "info", "server")
		if text := fmt.Sprint(info); err == nil && !strings.Contains(text, fmt.Sprintf("\r\nprocess_id:%d\r\n", p.Pid())) {
			err = fmt.Errorf("another server listens on the port: %s", text)
		}
		return err
	})
	return s, err
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
