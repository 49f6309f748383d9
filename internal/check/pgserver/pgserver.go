// Package pgserver starts PostgreSQL for tests. It sends SQL with the program psql and not with a driver, so that
// the modules of all tests can use it.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A Server is a PostgreSQL server on a free port of the loopback interface, with its files in a temporary
// folder. It ends when the tests end.
type Server struct {
	*enginetest.Program
	dir       string
	settings  []string
	databases atomic.Int64
	standbys  int
}

// binaries returns the folder with the programs of the newest installed version.
func binaries() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", fmt.Errorf("there is no postgres in the PATH or in /usr/lib/postgresql: apt-get install postgresql-15")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

var initdb = []string{"initdb", "-U", "postgres", "-A", "trust", "-N", "--no-instructions", "-E", "UTF8", "--locale=C"}

// New makes a server in dir and starts it. A setting is, for example, "fsync=off".
func New(dir string, settings ...string) (*Server, error) { return newWith(initdb, dir, settings) }

// NewFor starts a server that ends with the test.
func NewFor(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newFor(t, initdb, settings)
}

func newFor(t testing.TB, command, settings []string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "pglease") // other users must be able to enter the directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := newWith(command, dir, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// newWith makes a server in dir and starts it. The command makes the files of the server.
func newWith(command []string, dir string, settings []string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	attr, uid, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chown(dir, uid, -1), os.Chmod(dir, 0o755)); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	start := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, program), append(args, "-D", data)...)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		return cmd
	}
	if out, err := start(command[0], command[1:]...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %v\n%s", command[0], err, out)
	}
	p, err := enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		args := []string{"-k", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=400"}
		for _, set := range settings {
			args = append(args, "-c", set)
		}
		return start("postgres", args...)
	}, func(ctx context.Context, p *enginetest.Program) error {
		_, err := query(ctx, URL(p.Addr(), "postgres"), "select 1")
		return err
	})
	return &Server{Program: p, dir: dir, settings: settings}, err
}

// Start starts the server again after Kill, and returns when it answers. It retries for up to 20 s, because
// processes of the old server may still hold its port and files.
func (s *Server) Start() error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := s.Program.Start()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// URL returns the connection string of a database.
func (s *Server) URL(database string) string {
	return URL(s.Addr(), database)
}

// URL returns the connection string of a database of the server at an address.
func URL(address, database string) string {
	return "postgres://postgres@" + address + "/" + database + "?sslmode=disable"
}

// Pause stops every process of the server for the time d.
func (s *Server) Pause(d time.Duration) error {
	s.Freeze()
	time.Sleep(d) // a real engine
	s.Resume()
	return nil
}

// Kill ends the server like a crash.
func (s *Server) Kill() {
	s.killAll()
	s.Process.Kill()
}

// Stop ends the server.
func (s *Server) Stop() {
	s.quit()
	<-s.Ended()
}

// Name returns an unused name for a database.
func (s *Server) Name() string { return fmt.Sprint("d", s.databases.Add(1)) }

// Database makes a database, runs the SQL of its tables, and returns its name.
func (s *Server) Database(t testing.TB, tables string) string {
	t.Helper()
	name := s.Name()
	s.Exec(t, "postgres", "create database "+name)
	s.Exec(t, name, tables)
	return name
}

// Exec runs SQL as the superuser, in one transaction.
func (s *Server) Exec(t testing.TB, database, sql string) {
	t.Helper()
	if _, err := query(t.Context(), s.URL(database), sql); err != nil {
		t.Fatal(err)
	}
}

// query runs SQL as the superuser, and returns the columns and rows of its result as text.
func query(ctx context.Context, url, sql string) (string, error) {
	bin, err := binaries()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "psql"), "-XAtq", "-d", url, "-c", sql).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
