package pglease_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
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

// build compiles an example, and returns a function that starts it with the URL of a database.
func build(t *testing.T, name string) (start func(url string) *exec.Cmd) {
	t.Helper()
	program := shorthand.Build(t, ".", name)
	return func(url string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
		return cmd
	}
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
	url := shared.URL(shared.Database(t, pglease.Tables))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table reports (day date primary key, report text)"); err != nil {
		t.Fatal(err)
	}
	start := build(t, "job")
	var first strings.Builder
	cmd := start(url)
	cmd.Stderr = &first
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "work", func(context.Context) error {
		working := false
		scan(t, p, "select exists (select from pg_stat_activity where datname = current_database() and state = 'active' and query like '%pg_sleep(1)' and pid <> pg_backend_pid())", &working)
		if !working {
			return errors.New("it does not work yet")
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	})
	if err := cmd.Wait(); err == nil || !strings.Contains(first.String(), "context canceled") {
		t.Errorf("it was stopped, ended with %v, and said %q", err, &first)
	}
	checkReleased(t, p, "jobs/report")
	var said [4]string
	run := func(i int) {
		out, err := start(url).CombinedOutput()
		said[i] = string(out)
		if err != nil {
			t.Errorf("start %d: %v\n%s", i, err, out)
		}
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() { run(i) })
	}
	all.Wait()
	run(3)
	if made := strings.Count(strings.Join(said[:], ""), "did: made the report, "); made != 1 {
		t.Errorf("%d starts made the report:\n%s", made, said)
	}
	if others := strings.Count(strings.Join(said[:], ""), "did: nothing, "); others != 3 {
		t.Errorf("%d starts did nothing:\n%s", others, said)
	}
	if want := "did: nothing, because it found the report, "; !strings.Contains(said[3], want) {
		t.Errorf("the last start said %q, without %q", said[3], want)
	}
}

// If the example program "guarded" loses its lease, it counts no more until it has the lease again. If it
// is told to stop, it releases the lease and reports no error.
func TestGuardedExample(t *testing.T) {
	url := shared.URL(shared.Database(t, pglease.Tables))
	p := pool(t, url)
	if _, err := p.Exec(t.Context(), "create table counter as select 0 as n"); err != nil {
		t.Fatal(err)
	}
	g := build(t, "guarded")(url)
	stderr, err := g.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	says := func(text string) {
		t.Helper()
		all := ""
		for lines.Scan() {
			if all += lines.Text() + "\n"; strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("it said %q, without %q", all, text)
	}
	says("lease: term began")
	other, err := store(t, p, nil).Lease("counter", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := lease.Break(t.Context(), store(t, p, nil).Authority(), "counter", lease.Grace(0)); err != nil {
		t.Fatal(err)
	}
	if ok, err := other.Acquire(t.Context()); !ok {
		t.Fatal(err)
	}
	counted, last := 0, 0
	err = pgx.BeginFunc(t.Context(), p, func(tx pgx.Tx) error {
		if err := fencing.Advance(t.Context(), pglease.Mark(tx, "counter"), other.Token()); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), "select n from counter").Scan(&counted)
	})
	if err != nil {
		t.Fatal(err)
	}
	says("stale token 00000000000000000001: 00000000000000000002 has been seen")
	says("lease: waiting for another holder")
	if scan(t, p, "select n from counter", &last); last != counted {
		t.Errorf("it counted to %d after the newer holder found %d", last, counted)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("lease: term began")
	eventually(t, "a count", func(context.Context) error {
		if scan(t, p, "select n from counter", &last); last == counted {
			return errors.New("not yet")
		}
		return g.Process.Signal(syscall.SIGTERM)
	})
	for lines.Scan() {
	}
	if err := g.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	checkReleased(t, p, "counter")
}

// Each version of the example program "singleton" stops, hands over to the next, and exits. The next
// begins afterwards, and soon.
func TestSingletonExample(t *testing.T) {
	url := shared.URL(shared.Database(t, pglease.Tables))
	p := pool(t, url)
	start := build(t, "singleton")
	said := regexp.MustCompile(`^(\S+ \S+) version \d+ (works|stops)`)
	var programs []*exec.Cmd
	var outputs []*bufio.Scanner
	// says returns the time at which version i+1 says the word.
	says := func(i int, word string) (at time.Time) {
		t.Helper()
		for outputs[i].Scan() {
			m := said.FindStringSubmatch(outputs[i].Text())
			if m != nil && m[2] == word {
				at, err := time.Parse("2006/01/02 15:04:05.000000", m[1])
				if err != nil {
					t.Error(err)
				}
				return at
			}
			t.Log(outputs[i].Text())
		}
		t.Fatalf("version %d has ended, and did not say that it %s", i+1, word)
		return at
	}
	ends := func(i int) {
		t.Helper()
		for outputs[i].Scan() {
			t.Log(outputs[i].Text())
		}
		if err := programs[i].Wait(); err != nil {
			t.Errorf("version %d: %v", i+1, err)
		}
	}
	const versions = 3
	var gaps []time.Duration
	for i := range versions {
		cmd := start(url)
		cmd.Args = append(cmd.Args, "-version", strconv.Itoa(i+1))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		programs, outputs = append(programs, cmd), append(outputs, bufio.NewScanner(stderr))
		began := says(i, "works")
		if i == 0 {
			continue
		}
		gap := began.Sub(says(i-1, "stops"))
		if gap < 0 || gap > 10*time.Second {
			t.Errorf("version %d begins %v after the one before has stopped", i+1, gap)
		}
		gaps = append(gaps, gap)
		ends(i - 1)
	}
	if err := programs[versions-1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	ends(versions - 1)
	checkReleased(t, p, "singleton")
	t.Logf("the work rested for %v", gaps)
}
