package pglease_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/pglease"
)

// A program is an example program that is running.
type program struct {
	*exec.Cmd
	t    *testing.T
	out  *bufio.Scanner
	said string
}

// start starts a program with the URL of a database.
func start(t *testing.T, path, url string, args ...string) *program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	out, err := cmd.StderrPipe()
	if cmd.Stdout = cmd.Stderr; err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &program{Cmd: cmd, t: t, out: bufio.NewScanner(out)}
}

// says waits until the program writes a line with the text, and returns the line.
func (p *program) says(text string) string {
	p.t.Helper()
	for p.out.Scan() {
		p.said += p.out.Text() + "\n"
		if strings.Contains(p.out.Text(), text) {
			return p.out.Text()
		}
	}
	p.t.Fatalf("%v said %q, without %q", p.Args, p.said, text)
	return ""
}

// ends waits until the program ends, and returns everything that the program wrote.
func (p *program) ends(fails bool) string {
	p.t.Helper()
	for p.out.Scan() {
		p.said += p.out.Text() + "\n"
	}
	if err := p.Wait(); (err != nil) != fails {
		p.t.Errorf("%v ended with %v and said %s", p.Args, err, p.said)
	}
	return p.said
}

func scan(t *testing.T, p *pgxpool.Pool, query string, dest any) {
	t.Helper()
	if err := p.QueryRow(t.Context(), query).Scan(dest); err != nil {
		t.Fatal(err)
	}
}

func checkReleased(t *testing.T, p *pgxpool.Pool, name string) {
	t.Helper()
	res, err := lease.Inspect(t.Context(), store(t, p, nil).Authority(), name)
	if err != nil || res.Record.State != lease.Available || res.Record.Owner == "" {
		t.Errorf("the lease is %v, %v", res.Record, err)
	}
}

// If the example program "job" is stopped during its work, it releases the lease and reports an error. Of
// the processes that are started after it, one makes the report of the day, and the last one finds it.
func TestJobExample(t *testing.T) {
	url, p := database(t, "create table reports (day date primary key, report text)")
	path := shorthand.Build(t, ".", "job")
	first := start(t, path, url)
	eventually(t, "work", func(context.Context) error {
		working := false
		scan(t, p, "select exists (select from pg_stat_activity where datname = current_database() and state = 'active' and query like '%pg_sleep(1)' and pid <> pg_backend_pid())", &working)
		if !working {
			return errors.New("it does not work yet")
		}
		return first.Process.Signal(syscall.SIGTERM)
	})
	if said := first.ends(true); !strings.Contains(said, "context canceled") {
		t.Errorf("it was stopped, and said %q", said)
	}
	checkReleased(t, p, "jobs/report")
	said := ""
	for _, other := range []*program{start(t, path, url), start(t, path, url), start(t, path, url)} {
		said += other.ends(false)
	}
	last := start(t, path, url).ends(false)
	if made, others := strings.Count(said, "did: made the report, "), strings.Count(said, "did: nothing, "); made != 1 || others != 2 {
		t.Errorf("%d of three processes made the report, and %d did nothing:\n%s", made, others, said)
	}
	if want := "did: nothing, because it found the report, "; !strings.Contains(last, want) {
		t.Errorf("the last process said %q, without %q", last, want)
	}
}

// If the example program "guarded" loses its lease, it counts no more until it has the lease again. If it
// is told to stop, it releases the lease and reports no error.
func TestGuardedExample(t *testing.T) {
	url, p := database(t, "create table counter as select 0 as n")
	g := start(t, shorthand.Build(t, ".", "guarded"), url)
	g.says("lease: term began")
	other := store(t, p, nil).Authority()
	do(t, other, "counter", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, 0)
	newer := do(t, other, "counter", acquire(idB, time.Hour), 0).Record.Token()
	counted, last := 0, 0
	if err := pgx.BeginFunc(t.Context(), p, func(tx pgx.Tx) error {
		if err := fencing.Advance(t.Context(), pglease.Mark(tx, "counter"), newer); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), "select n from counter").Scan(&counted)
	}); err != nil {
		t.Fatal(err)
	}
	g.says("stale token 00000000000000000001: 00000000000000000002 has been seen")
	g.says("lease: waiting for another holder")
	if scan(t, p, "select n from counter", &last); last != counted {
		t.Errorf("it counted to %d after the newer holder found %d", last, counted)
	}
	do(t, other, "counter", release(idB), 0)
	g.says("lease: term began")
	eventually(t, "a count", func(context.Context) error {
		if scan(t, p, "select n from counter", &last); last == counted {
			return errors.New("not yet")
		}
		return g.Process.Signal(syscall.SIGTERM)
	})
	g.ends(false)
	checkReleased(t, p, "counter")
}

// Each version of the example program "singleton" stops, hands over to the next, and exits. The next
// begins afterwards, and soon.
func TestSingletonExample(t *testing.T) {
	url, p := database(t, "")
	path := shorthand.Build(t, ".", "singleton")
	at := func(line string) time.Time {
		const layout = "2006/01/02 15:04:05.000000"
		at, err := time.Parse(layout, line[:min(len(line), len(layout))])
		if err != nil {
			t.Error(err)
		}
		return at
	}
	var before *program
	for version := range 3 {
		next := start(t, path, url, "-version", strconv.Itoa(version))
		began := at(next.says(" works"))
		if before != nil {
			gap := began.Sub(at(before.says(" stops")))
			if gap < 0 || gap > 10*time.Second {
				t.Errorf("version %d begins %v after the one before has stopped", version, gap)
			}
			t.Logf("the work rested for %v", gap)
			before.ends(false)
		}
		before = next
	}
	if err := before.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	before.ends(false)
	checkReleased(t, p, "singleton")
}
