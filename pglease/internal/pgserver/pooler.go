package pgserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Pooler starts pgbouncer in front of the server. pgbouncer shares a few connections between
// transactions. Pooler returns the function url, which takes the name of a database and returns the
// connection string of that database through pgbouncer.
func (s *Server) Pooler(t testing.TB) (url func(database string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("this test needs pgbouncer: apt-get install pgbouncer")
	}
	port, err := freePort()
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
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 4
logfile = %s
`, s.port, port, users, filepath.Join(dir, "log")),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program, settings)
	child.SysProcAttr, child.Dir = attr, dir
	started, ended := make(chan error), make(chan struct{})
	go startAndWait(child, started, ended)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		<-ended
	})
	err = await("pgbouncer", ended, filepath.Join(dir, "log"), func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(database string) string {
		return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", port, database)
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
