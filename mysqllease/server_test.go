package mysqllease_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
)

var (
	idA, idB                        = shorthand.IDA, shorthand.IDB
	acquire, renew, release         = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do, says, eventually, permanent = shorthand.Do, shorthand.Says, shorthand.Eventually, shorthand.Permanent
)

// mysqld is the program of a MySQL server, for the same tests at MySQL instead of MariaDB.
var mysqld = os.Getenv("MYSQLD")

// A server is a MariaDB or MySQL server with its files in a temporary folder.
type server struct {
	*enginetest.Program
	dir       string
	databases atomic.Int64
}

var shared *server // of all tests that do not harm their server

func TestMain(m *testing.M) {
	enginetest.Main(m, nil, func(dir string) (stop func(), err error) {
		if shared, err = newServer(dir); err != nil {
			return nil, fmt.Errorf("these tests need MariaDB 10.11 or newer (apt-get install mariadb-server): %w", err)
		}
		return func() { shared.Kill() }, nil
	})
}

func newServer(dir string, settings ...string) (*server, error) {
	program, install := "mariadbd", exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+dir+"/data", "--skip-test-db", "--auth-root-authentication-method=normal")
	settings = append([]string{"--no-defaults", "--datadir=" + dir + "/data", "--socket=" + dir + "/socket", "--bind-address=127.0.0.1",
		"--innodb-buffer-pool-size=64M", "--max-connections=400", "--log-bin", "--log-bin-trust-function-creators=1"}, settings...)
	if mysqld != "" {
		program, install = mysqld, exec.Command(mysqld, "--no-defaults", "--datadir="+dir+"/data", "--initialize-insecure")
		settings = append(settings, "--mysqlx=OFF", "--secure-file-priv=", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			"--plugin-load=semisync_source.so;semisync_replica.so")
	}
	if os.Geteuid() == 0 {
		install.Args, settings = append(install.Args, "--user=root"), append(settings, "--user=root")
	}
	install.Env = append(os.Environ(), "TMPDIR="+dir) // two that use the same folder at once fail
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v\n%s", err, out)
	}
	s := &server{dir: dir}
	var err error
	s.Program, err = enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		cmd := exec.Command(program, append(settings, "--port="+port, "--server-id="+port)...)
		cmd.Env = install.Env
		return cmd
	}, func(ctx context.Context, p *enginetest.Program) error {
		db := dial(config(p.Addr(), "mysql"))
		defer db.Close()
		return db.PingContext(ctx)
	})
	return s, err
}

// ownServer starts a server that ends with the test.
func ownServer(t testing.TB, settings ...string) *server {
	t.Helper()
	s, err := newServer(t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	return s
}

func (s *server) config(database string) *mysql.Config { return config(s.Addr(), database) }

func config(addr, database string) *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", addr, "root", database
	c.Logger = &mysql.NopLogger{}
	return c
}

func url(addr, database string) string { return "mysql://root@" + addr + "/" + database }

func dial(c *mysql.Config) *sql.DB {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

// database makes a database with the tables.
func (s *server) database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("d", s.databases.Add(1))
	s.exec(t, "mysql", "create database "+name)
	if err := mysqllease.Migrate(context.Background(), s.config(name)); err != nil {
		t.Fatal(err)
	}
	return name
}

func (s *server) db(t testing.TB, database string) *sql.DB {
	db := dial(s.config(database))
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *server) exec(t testing.TB, database, query string, args ...any) {
	t.Helper()
	if _, err := s.db(t, database).Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (s *server) store(t testing.TB, database string, o *mysqllease.Options) *mysqllease.Store {
	t.Helper()
	st, err := mysqllease.New(s.config(database), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}
