package pglease_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/pglease"
)

// shared is the server of the tests that do no harm to it.
var shared *server

func TestMain(m *testing.M) {
	if processes.Hold(openStore) {
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pglease")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if shared, err = newServer(dir, "fsync=off"); err != nil {
			fmt.Fprintln(os.Stderr, "these tests need PostgreSQL 14 or newer: ", err)
			return 1
		}
		defer shared.stop()
		return m.Run()
	}())
}

// A server is a PostgreSQL of its own, on a free port of the loopback, in a folder that goes
// away. It does not outlive the tests.
type server struct {
	dir, data string
	port      int
	settings  []string
	child     *exec.Cmd
	ended     chan struct{}
	databases atomic.Int64
}

// binaries is where the programs of the newest installed version are.
func binaries() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", fmt.Errorf("there is no postgres in the PATH or in /usr/lib/postgresql: apt-get install postgresql-15")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func newServer(dir string, settings ...string) (*server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	attr, uid, err := nobody()
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	s := &server{dir: dir, data: filepath.Join(dir, "data"), settings: settings}
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", s.data, "-U", "postgres", "-A", "trust", "-N", "--no-instructions", "-E", "UTF8", "--locale=C")
	init.SysProcAttr, init.Dir = attr, dir
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	return s, s.start()
}

// start starts the server, also again, and returns when it answers.
func (s *server) start() error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	args := []string{"-D", s.data, "-k", s.dir, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=400"}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.child = exec.Command(filepath.Join(bin, "postgres"), args...)
	s.child.SysProcAttr, _, _ = nobody()
	s.child.Dir, s.child.Stdout, s.child.Stderr = s.dir, log, log
	s.ended = make(chan struct{})
	started := make(chan error)
	go startAndWait(s.child, started, s.ended)
	if err := <-started; err != nil {
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			conn.Close(ctx)
			cancel()
			return nil
		}
		cancel()
		select {
		case <-s.ended:
			out, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres ended: %s", out)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %v", err)
		}
	}
}

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// kill ends the server as a crash does.
func (s *server) kill() {
	s.killAll()
	<-s.ended
}

// restart starts a server that was killed. Its children may hold on to what it had for a while.
func (s *server) restart() error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := s.start()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (s *server) stop() {
	s.quit()
	<-s.ended
}

// database makes a database, with the schema of leases in it, and returns its address.
func (s *server) database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("d", s.databases.Add(1))
	s.exec(t, "postgres", "create database "+name)
	s.exec(t, name, pglease.Schema)
	return name
}

// exec runs SQL as the superuser.
func (s *server) exec(t testing.TB, database, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// pool makes a pool that ends with the test.
func pool(t testing.TB, url string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range configure {
		f(config)
	}
	p, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// store makes a Store that ends with the test.
func store(t testing.TB, p *pgxpool.Pool, o *pglease.Options) *pglease.Store {
	t.Helper()
	s, err := pglease.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// startAndWait runs a child to its end. Its thread must live as long: the child dies with it.
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
