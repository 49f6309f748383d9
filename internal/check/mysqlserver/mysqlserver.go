// Package mysqlserver starts MariaDB and MySQL for tests. It needs no driver, so that the modules of all tests can
// use it.
package mysqlserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// MySQL is the program of a MySQL server. If it is empty, the tests use MariaDB.
var MySQL = os.Getenv("MYSQLD")

// A Server is a server on a free port of the loopback interface, with its files in a folder of its own. It writes a
// binary log. The user root has no password.
type Server struct{ *enginetest.Program }

// New makes a server in dir and starts it. A setting is, for example, "--max-connections=9".
func New(dir string, settings ...string) (*Server, error) {
	program, install := "mariadbd", exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+dir+"/data", "--skip-test-db", "--auth-root-authentication-method=normal")
	settings = append([]string{"--no-defaults", "--datadir=" + dir + "/data", "--socket=" + dir + "/socket", "--bind-address=127.0.0.1",
		"--innodb-buffer-pool-size=64M", "--max-connections=400", "--log-bin", "--log-bin-trust-function-creators=1"}, settings...)
	if MySQL != "" {
		program, install = MySQL, exec.Command(MySQL, "--no-defaults", "--datadir="+dir+"/data", "--initialize-insecure")
		settings = append(settings, "--mysqlx=OFF", "--secure-file-priv=", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			"--plugin-load=semisync_source.so;semisync_replica.so")
	}
	if os.Geteuid() == 0 {
		install.Args, settings = append(install.Args, "--user=root"), append(settings, "--user=root")
	}
	install.Env = append(os.Environ(), "TMPDIR="+dir) // two that use the same folder at once fail
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("these tests need MariaDB 10.11 or newer (apt-get install mariadb-server): %v\n%s", err, out)
	}
	p, err := enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		cmd := exec.Command(program, append(settings, "--port="+port, "--server-id="+port)...)
		cmd.Env = install.Env
		return cmd
	}, nil)
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

// Client runs SQL as root with the program mysql, as in a shell script.
func (s *Server) Client(database, sql string, flags ...string) error {
	host, port, _ := net.SplitHostPort(s.Addr())
	cmd := exec.Command("mysql", append([]string{"--no-defaults", "--host=" + host, "--port=" + port, "--user=root", database}, flags...)...)
	cmd.Stdin = strings.NewReader(sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// URL returns the URL of a database of the server at an address.
func URL(addr, database string) string { return "mysql://root@" + addr + "/" + database }
