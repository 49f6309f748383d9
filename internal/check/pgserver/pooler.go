package pgserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// Pooler starts pgbouncer in front of the server, to share a few connections between transactions. The
// function url returns the connection string of a database through pgbouncer.
func (s *Server) Pooler(t testing.TB) (url func(database string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("this test needs pgbouncer: apt-get install pgbouncer")
	}
	address, err := enginetest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(s.dir, "pooler")
	if err != nil {
		t.Fatal(err)
	}
	attr, uid, err := unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	users, settings := filepath.Join(dir, "users"), filepath.Join(dir, "settings")
	for file, text := range map[string]string{
		users: "\"postgres\" \"\"\n",
		settings: fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 4
logfile = %s
`, port(s.address), port(address), users, filepath.Join(dir, "log")),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, settings)
	cmd.SysProcAttr, cmd.Dir = attr, dir
	child, err := enginetest.StartCommand(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Kill() })
	err = await("pgbouncer", child.Ended(), filepath.Join(dir, "log"), func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(database string) string { return URL(address, database) }
}
