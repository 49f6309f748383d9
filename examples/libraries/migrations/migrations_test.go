package migrations

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratesqlite "github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"modernc.org/sqlite"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

// files are three migrations. Each adds its number to a table, and the second calls the SQL function pause.
// To golang-migrate, the line of goose is a comment.
var files = fstest.MapFS{
	"1_one.up.sql":   {Data: []byte("-- +goose Up\ncreate table steps (n);\ninsert into steps values (1);\n")},
	"2_two.up.sql":   {Data: []byte("-- +goose Up\ninsert into steps values (2);\nselect pause();\n")},
	"3_three.up.sql": {Data: []byte("-- +goose Up\ninsert into steps values (3);\n")},
}

// pause is called with "within" in the second migration, and with "between" after each of golang-migrate.
var pause func(where string)

func (pauser) Printf(string, ...any) { pause("between") }
func (pauser) Verbose() bool         { return false }

type pauser struct{}

func TestMain(m *testing.M) {
	err := sqlite.RegisterScalarFunction("pause", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		pause("within")
		return nil, nil
	})
	if tool := os.Getenv("MIGRATIONS_TOOL"); tool != "" {
		err = errors.Join(err, process(tool, os.Getenv("MIGRATIONS_FOLDER")))
	} else if err == nil {
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func database(folder string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+filepath.Join(folder, "data.db")+"?_pragma=busy_timeout(10000)")
}

// steps returns the numbers of the migrations that are in the table.
func steps(t *testing.T, folder string) (all string) {
	t.Helper()
	db, err := database(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("select group_concat(n, ' ') from steps").Scan(&all); err != nil {
		t.Error(err)
	}
	return all
}

// up migrates the database in the folder with a tool.
func up(ctx context.Context, tool, folder string, l lease.Lease) error {
	db, err := database(folder)
	if err != nil {
		return err
	}
	defer db.Close()
	if tool == "goose" {
		return gooseUp(ctx, l, db, fs.FS(files))
	}
	return migrateUp(ctx, l, func() (*migrate.Migrate, error) {
		source, err := iofs.New(files, ".")
		if err != nil {
			return nil, err
		}
		driver, err := migratesqlite.WithInstance(db, &migratesqlite.Config{})
		if err != nil {
			return nil, err
		}
		m, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
		if err == nil {
			m.Log = pauser{}
		}
		return m, err
	})
}

// process is one of several that migrate a database when they start. If a file in the folder has the name
// of a place, the first process that comes there removes the file, prints its process ID, and hangs.
func process(tool, folder string) error {
	pause = func(where string) {
		if os.Remove(filepath.Join(folder, where)) == nil {
			fmt.Println(os.Getpid())
			select {}
		}
		time.Sleep(50 * time.Millisecond)
	}
	store, err := sqlitelease.Open(filepath.Join(folder, "leases.db"), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := store.Lease("migrations", &session.Options{Duration: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer l.Close(context.Background())
	return up(context.Background(), tool, folder, l)
}

// Of three processes that start at once, each migration is carried out by one. If that one is killed,
// another goes on, unless golang-migrate was within a migration.
func TestProcesses(t *testing.T) {
	for _, test := range []struct{ tool, hangs, steps, err string }{
		{"goose", "", "1 2 3", ""},
		{"goose", "within", "1 2 3", ""},
		{"golang-migrate", "", "1 2 3", ""},
		{"golang-migrate", "between", "1 2 3", ""},
		{"golang-migrate", "within", "1", "Dirty database version 2"},
	} {
		t.Run(test.tool+"/killed "+test.hangs, func(t *testing.T) {
			folder := t.TempDir()
			if test.hangs != "" {
				if err := os.WriteFile(filepath.Join(folder, test.hangs), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			hung, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer hung.Close()
			all := map[int]*exec.Cmd{}
			for range 3 {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), "MIGRATIONS_TOOL="+test.tool, "MIGRATIONS_FOLDER="+folder)
				cmd.Stdout, cmd.Stderr = out, new(bytes.Buffer)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				all[cmd.Process.Pid] = cmd
			}
			out.Close()
			for lines := bufio.NewScanner(hung); lines.Scan(); {
				var pid int
				if fmt.Sscan(lines.Text(), &pid); all[pid] == nil {
					t.Fatalf("a process says %q", lines.Text())
				}
				all[pid].Process.Kill()
				all[pid].Wait()
				delete(all, pid)
			}
			if want := map[bool]int{true: 3, false: 2}[test.hangs == ""]; len(all) != want {
				t.Errorf("%d processes were not killed, want %d", len(all), want)
			}
			for _, cmd := range all {
				err, text := cmd.Wait(), fmt.Sprint(cmd.Stderr)
				if (err == nil) != (test.err == "") || !strings.Contains(text, test.err) {
					t.Errorf("%v: %s", err, text)
				}
			}
			if got := steps(t, folder); got != test.steps {
				t.Errorf("the migrations %s were carried out, want %s", got, test.steps)
			}
		})
	}
}

// stopped maps a tool to the migrations that it has carried out when it is stopped within the second.
var stopped = map[string]string{"goose": "1", "golang-migrate": "1 2"}

// If the connection to the store is lost within the second migration, goose rolls that back, and
// golang-migrate stops after it. Both return why.
func TestStopWindow(t *testing.T) {
	for tool, want := range stopped {
		t.Run(tool, func(t *testing.T) {
			folder := t.TempDir()
			var cut atomic.Bool
			a := leasefault.Script(memory.New(nil).Authority(), leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.LoseRequest)))
			l, err := session.New(a, "migrations", &session.Options{Duration: 6 * time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			pause = func(where string) {
				if where == "within" {
					held, cancel := l.WhileHeld(t.Context())
					defer cancel()
					cut.Store(true)
					<-held.Done()
					time.Sleep(200 * time.Millisecond) // less than a StopWindow
				}
			}
			if err := up(t.Context(), tool, folder, l); !errors.Is(err, lease.ErrStopWindow) {
				t.Errorf("%v, want that the lease is about to end", err)
			}
			cut.Store(false)
			l.Close(t.Context())
			if got := steps(t, folder); got != want {
				t.Errorf("the migrations %s were carried out, want %s", got, want)
			}
		})
	}
}
