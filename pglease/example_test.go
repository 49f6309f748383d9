package pglease_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/pglease"
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
	for _, name := range []string{"takeover", "guard", "guarded", "job"} {
		program := build(t, name)
		for url, want := range map[string]string{
			shared.URL("postgres"):      "run the statements of pglease.Schema",
			"postgres://127.0.0.1:1/db": "see that the server is up and the connection string right",
		} {
			t.Run(name+", "+want, func(t *testing.T) {
				args := []string{"-url", url}
				if name == "guarded" || name == "job" {
					args = nil
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

// The example programs do what their documentation says.
func TestExamples(t *testing.T) {
	url := shared.URL(shared.Database(t))
	for name, want := range map[string]string{
		"takeover": "second holds it with token",
		"guard":    "is refused: fencing: stale token",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := start(t, build(t, name), url, "-url", url).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("\n%s", out)
		})
	}
}

// scan runs a query that returns one value.
func scan(t *testing.T, p *pgxpool.Pool, query string, dest any) {
	t.Helper()
	if err := p.QueryRow(t.Context(), query).Scan(dest); err != nil {
		t.Fatal(err)
	}
}

// The example program "guarded" counts until a newer holder has raised the mark. The program then
// ends with the error of the mark, and counts no more.
func TestGuardedExample(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table counter as select 0 as n"); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, build(t, "guarded"), url)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	counted := 0
	for began := time.Now(); counted == 0; scan(t, p, "select n from counter", &counted) {
		if time.Since(began) > time.Minute {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("it does not count:\n%s", &said)
		}
		time.Sleep(10 * time.Millisecond)
	}
	err := pgx.BeginFunc(t.Context(), p, func(tx pgx.Tx) error {
		if err := fencing.Advance(t.Context(), pglease.Mark(tx, "counter"), lease.TokenOf(1000)); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), "select n from counter").Scan(&counted)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("it ended without an error")
	}
	if want := "stale token 00000000000000000001: 00000000000000001000 has been seen"; !strings.Contains(said.String(), want) {
		t.Errorf("it said %q, without %q", &said, want)
	}
	last := 0
	scan(t, p, "select n from counter", &last)
	if last != counted {
		t.Errorf("it counted to %d after the newer holder found %d", last, counted)
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
	if made := strings.Count(strings.Join(said, ""), "made the report: true"); made != 1 {
		t.Errorf("%d starts made the report:\n%s", made, strings.Join(said, ""))
	}
	if want := "had the lease: true; made the report: false"; !strings.Contains(said[3], want) {
		t.Errorf("the last start said %q, without %q", said[3], want)
	}
	reports := 0
	scan(t, p, "select count(*) from reports where report like '%tables'", &reports)
	if reports != 1 {
		t.Errorf("there are %d reports", reports)
	}
}
