package pgserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// Pooler starts pgbouncer in front of the server, to share a few connections between transactions. The
// function url returns the connection string of a database through pgbouncer. A server can have one Pooler.
func (s *Server) Pooler(t testing.TB) (url func(database string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("this test needs pgbouncer: apt-get install pgbouncer")
	}
	dir := filepath.Join(s.dir, "pooler")
	attr, uid, err := unprivileged()
	if err := errors.Join(err, os.Mkdir(dir, 0o755), os.Chown(dir, uid, -1)); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(s.Addr())
	p, err := enginetest.StartProgram(dir, func(_, own string) *exec.Cmd {
		settings := filepath.Join(dir, "settings")
		if err := os.WriteFile(settings, fmt.Appendf(nil, `[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`, host, port, own), 0o644); err != nil {
			t.Error(err)
		}
		cmd := exec.Command(program, settings)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		return cmd
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return func(database string) string { return URL(p.Addr(), database) }
}
