package pglease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

// build compiles an example.
func build(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", program, "./examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// start starts a program, and passes the URL of the database to it in an environment variable.
func start(t *testing.T, program, url string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	return cmd
}

// If the tables are missing, an example says at once what to do. If there is no server, an example
// says what is wrong.
func TestExamplesSayWhatFails(t *testing.T) {
	for _, name := range []string{"takeover", "guarded", "job"} {
		program := build(t, name)
		for url, want := range map[string]string{
			shared.URL("postgres"):      "call pglease.Migrate",
			"postgres://127.0.0.1:1/db": "check that the server is up and that the connection string is correct",
		} {
			t.Run(name+", "+want, func(t *testing.T) {
				var args []string
				if name == "takeover" {
					args = []string{"-url", url}
				}
				cmd := start(t, program, url, args...)
				said, err := cmd.StderrPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				text, lines := "", bufio.NewScanner(said)
				for !strings.Contains(text, want) && lines.Scan() {
					text += lines.Text() + "\n"
				}
				if waited := time.Since(began); waited > 20*time.Second {
					t.Errorf("it said nothing for %v", waited)
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if !strings.Contains(text, want) {
					t.Errorf("it said %q, without %q", text, want)
				}
			})
		}
	}
}

// The example program "takeover" shows a lease that is taken over.
func TestTakeoverExample(t *testing.T) {
	url := shared.URL(shared.Database(t))
	out, err := start(t, build(t, "takeover"), url, "-url", url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "second holds it with token") {
		t.Errorf("%v\n%s", err, out)
	}
}

// scan runs a query that returns one value.
func scan(t *testing.T, p *pgxpool.Pool, query string, dest any) {
	t.Helper()
	if err := p.QueryRow(t.Context(), query).Scan(dest); err != nil {
		t.Fatal(err)
	}
}

// If the example program "job" is started several times on a day, the first process makes the
// report of the day, and all other processes find the report.
func TestJobExample(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table reports (day date primary key, report text)"); err != nil {
		t.Fatal(err)
	}
	program := build(t, "job")
	said := make([]string, 4)
	run := func(i int) {
		out, err := start(t, program, url).CombinedOutput()
		said[i] = string(out)
		if err != nil {
			t.Errorf("start %d: %v\n%s", i, err, out)
		}
	}
	var first sync.WaitGroup
	for i := range 3 {
		first.Go(func() { run(i) })
	}
	first.Wait()
	run(3)
	if made := strings.Count(strings.Join(said, ""), "had the lease: true; found the report: false"); made != 1 {
		t.Errorf("%d starts made the report:\n%s", made, strings.Join(said, ""))
	}
	if want := "had the lease: true; found the report: true"; !strings.Contains(said[3], want) {
		t.Errorf("the last start said %q, without %q", said[3], want)
	}
	reports := 0
	scan(t, p, "select count(*) from reports where report like '%tables'", &reports)
	if reports != 1 {
		t.Errorf("there are %d reports", reports)
	}
}

// If the example program "job" is stopped during its work, it releases the lease and reports an
// error. The next start makes the report.
func TestStopOfTheJobExample(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table reports (day date primary key, report text)"); err != nil {
		t.Fatal(err)
	}
	program := build(t, "job")
	cmd := start(t, program, url)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began, working := time.Now(), false; !working; {
		if time.Since(began) > time.Minute {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("it does not work:\n%s", &said)
		}
		const query = "select exists (select from pg_stat_activity where datname = current_database() and state = 'active' and query like '%pg_sleep(1)' and pid <> pg_backend_pid())"
		scan(t, p, query, &working)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), "context canceled") {
		t.Errorf("it ended with %v, and said %q", err, &said)
	}
	checkReleased(t, p, "jobs/report", cmd.Process.Pid)
	if out, err := start(t, program, url).CombinedOutput(); err != nil || !strings.Contains(string(out), "had the lease: true; found the report: false") {
		t.Errorf("the next start: %v\n%s", err, out)
	}
}

// checkReleased checks that an example program has released its lease, and that its owner was the
// default one, which has the process ID pid.
func checkReleased(t *testing.T, p *pgxpool.Pool, name string, pid int) {
	t.Helper()
	want := regexp.MustCompile(fmt.Sprintf("^.+_%d_[0-9a-f]{16}$", pid))
	res, err := lease.Inspect(t.Context(), store(t, p, nil).Authority(), name)
	if err != nil || res.Record.State != lease.Available || !want.MatchString(res.Record.Owner) {
		t.Errorf("the lease is %v, and its owner was %q, want %s; %v", res.Record.State, res.Record.Owner, want, err)
	}
}

// A guardedProgram is a running process of the example program "guarded".
type guardedProgram struct {
	*exec.Cmd
	pool *pgxpool.Pool // for the database of the process
	said *bufio.Scanner
}

// startGuarded calls before, and then starts the example program "guarded" in a database of its own.
func startGuarded(t *testing.T, program string, before func(*pgxpool.Pool)) *guardedProgram {
	t.Helper()
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table counter as select 0 as n"); err != nil {
		t.Fatal(err)
	}
	before(p)
	cmd := start(t, program, url)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &guardedProgram{cmd, p, bufio.NewScanner(said)}
}

// says waits until the process has written a line with the text. If the process ends before, says
// reports whether all its lines had no such text.
func (g *guardedProgram) says(t *testing.T, text string) {
	t.Helper()
	all := ""
	for g.said.Scan() {
		if all += g.said.Text() + "\n"; strings.Contains(g.said.Text(), text) {
			return
		}
	}
	t.Errorf("it said %q, without %q", all, text)
}

// stop stops the process, which must end without an error.
func (g *guardedProgram) stop(t *testing.T) {
	t.Helper()
	if err := g.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for g.said.Scan() {
	}
	if err := g.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// If the example program "guarded" is told to stop, it releases the lease and reports no error, both
// while it counts and while it waits. After a loss it counts no more until it has the lease again.
func TestGuardedExample(t *testing.T) {
	program, nothing := build(t, "guarded"), func(*pgxpool.Pool) {}
	take := func(t *testing.T, p *pgxpool.Pool) *session.Session {
		other, err := store(t, p, nil).Lease("counter", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close(context.Background()) })
		if ok, err := other.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		return other
	}
	t.Run("stopped while it counts", func(t *testing.T) {
		t.Parallel()
		g := startGuarded(t, program, nothing)
		g.says(t, "lease: term began")
		g.stop(t)
		checkReleased(t, g.pool, "counter", g.Process.Pid)
	})
	t.Run("stopped while it waits", func(t *testing.T) {
		t.Parallel()
		g := startGuarded(t, program, func(p *pgxpool.Pool) { take(t, p) })
		g.says(t, "lease: waiting for another holder")
		g.stop(t)
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		g := startGuarded(t, program, nothing)
		g.says(t, "lease: term began")
		if _, err := lease.Break(t.Context(), store(t, g.pool, nil).Authority(), "counter", lease.Grace(0)); err != nil {
			t.Fatal(err)
		}
		other := take(t, g.pool)
		counted, last := 0, 0
		err := pgx.BeginFunc(t.Context(), g.pool, func(tx pgx.Tx) error {
			if err := fencing.Advance(t.Context(), pglease.Mark(tx, "counter"), other.Token()); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), "select n from counter").Scan(&counted)
		})
		if err != nil {
			t.Fatal(err)
		}
		g.says(t, "stale token 00000000000000000001: 00000000000000000002 has been seen")
		g.says(t, "lease: waiting for another holder")
		scan(t, g.pool, "select n from counter", &last)
		if last != counted {
			t.Errorf("it counted to %d after the newer holder found %d", last, counted)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.says(t, "lease: term began")
		eventually(t, "a count", func(context.Context) error {
			if scan(t, g.pool, "select n from counter", &last); last == counted {
				return errors.New("not yet")
			}
			return nil
		})
		g.stop(t)
	})
}
