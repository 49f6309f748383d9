//go:build unix

package sqlitelease_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/sqlitelease"
)

var idA, idB = shorthand.IDA, shorthand.IDB

// childVariable tells a copy of the test binary what to do: a word and a path.
const childVariable = "SQLITELEASE_CHILD"

func TestMain(m *testing.M) {
	if task, path, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := child(task, path); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	enginetest.Main(m, nil, nil)
}

// child is the main function of a copy of the test binary.
func child(task, path string) error {
	ctx := context.Background()
	switch task {
	case "write": // open, acquire, release and close until killed, and print each step and token before it
		for {
			fmt.Println("open")
			s, err := sqlitelease.Open(path, nil)
			if err != nil {
				return err
			}
			fmt.Println("acquire")
			res, err := s.Authority().Do(ctx, "killed", shorthand.Acquire(idA, lease.Infinite))
			if err != nil {
				return err
			}
			fmt.Println(res.Record.Epoch)
			fmt.Println("release")
			if _, err := s.Authority().Do(ctx, "killed", shorthand.Release(idA)); err != nil {
				return err
			}
			fmt.Println("close")
			if err := s.Close(); err != nil {
				return err
			}
		}
	case "fill":
		return fill(path)
	}
	// Any other task acquires or releases the lease a when it is told to, and prints the epoch.
	s, err := sqlitelease.Open(path, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = os.Stdin.Read(make([]byte, 1))
	req, limit := shorthand.Acquire(idB, time.Minute), time.Minute
	if task == "release" {
		req, limit = shorthand.Release(idA), 300*time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := s.Authority().Do(ctx, "a", req)
	if err == nil {
		fmt.Println(res.Record.Epoch)
	}
	return err
}

func start(t *testing.T, task, path string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+task+" "+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "leases.db") }

func open(t testing.TB, path string, o *sqlitelease.Options) *sqlitelease.Store {
	t.Helper()
	s, err := sqlitelease.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// database opens the file as another program does. Its transactions lock the file.
func database(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func exe(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db := database(t, path)
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func query(t testing.TB, path, query string) (answer string) {
	t.Helper()
	db := database(t, path)
	defer db.Close()
	if err := db.QueryRow(query).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// lock locks the file, as a tool does that has a transaction open.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	db := database(t, path)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback()
		db.Close()
	}
}

func acquire(t testing.TB, s *sqlitelease.Store, name string, d time.Duration) lease.Record {
	t.Helper()
	return shorthand.Do(t, s.Authority(), name, shorthand.Acquire(idA, d), 0).Record
}

// Each rule has a file of its own, because 200 rules side by side keep one file locked all the time.
func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(t testing.TB) string { // of the rule to which t belongs
		rule := strings.Split(t.Name(), "/")
		return filepath.Join(dir, strings.Join(rule[1:min(4, len(rule))], "_"))
	}
	store := func(t testing.TB) *sqlitelease.Store { return open(t, path(t), nil) }
	o := leasetest.Options{Unit: 500 * time.Millisecond}
	o.Store.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Store { return linked.Store(store(t), transmit) }
	o.Authority.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
		return lease.NewAuthority(linked.Store(store(t), transmit))
	}
	o.Authority.Put = func(t testing.TB, _ lease.Authority, name string, r lease.Record) {
		text, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		exe(t, path(t), "insert into lease select ?, version + 1, ? from lease_meta where true on conflict (name) do update set version = excluded.version, record = excluded.record", name, string(text))
		exe(t, path(t), "update lease_meta set version = version + 1")
	}
	if testing.Short() {
		o.Can = leasetest.Everything &^ leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	enginetest.Suites{
		Options: o,
		Open:    func(t testing.TB) enginetest.Store { return store(t) },
		Corrupt: func(t testing.TB, name string) {
			exe(t, path(t), "update lease set record = '{' where name = ?", name)
		},
		Forget: func(t testing.TB, s lease.Store) time.Duration { // an operator deletes what is over
			for e, err := range s.(*sqlitelease.Store).List(t.Context(), "") {
				if err == nil && !e.Record.State.Locked() {
					exe(t, path(t), "delete from lease where name = ?", e.Name)
				}
			}
			return 0
		},
	}.Run(t, "Store", "Authority", "Lease")
}

// SPEC A2: histories of eight stores of one file are linearizable in the time of the file.
func TestHistories(t *testing.T) {
	t.Parallel()
	linearize.TestHistories(t, enginetest.At("file:"+newPath(t), 8), nil, &linearize.TestOptions{
		Runs: 300, Workload: linearize.Workload{Term: 20 * time.Millisecond},
		Options: linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond},
	})
}

// SPEC G1, G2, H9: holders in eight processes are paused, resumed and killed. No stale write passes
// the guard, and no holder believes that it holds the lease while another has it.
func TestHoldersInProcesses(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open(t, path, nil)
	target := enginetest.At("file:"+path, 8)
	target.Harm = func(r *rand.Rand) string {
		defer lock(t, path)()
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		return "locked file"
	}
	enginetest.TestHolders(t, target, nil)
}

// A process that is killed in any step, such as while it makes the file or removes the log, leaves the
// file whole and usable at once, and every token that it printed is kept.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 10
	}
	var path string
	var last uint64
	grants, steps := 0, map[string]int{}
	for i := range kills {
		if i%4 == 0 {
			path, last = newPath(t), 0
		}
		cmd, out := start(t, "write", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, step := bufio.NewScanner(out), "start"
		note := func() {
			epoch, err := strconv.ParseUint(lines.Text(), 10, 64)
			switch {
			case err != nil:
				step = lines.Text()
			case epoch <= last:
				t.Fatalf("epoch %d after %d", epoch, last)
			default:
				last, grants = epoch, grants+1
			}
		}
		for n, most := 0, rand.IntN(30); n < most && lines.Scan(); n++ {
			note()
		}
		time.Sleep(rand.N(5 * time.Millisecond))
		_ = cmd.Process.Kill()
		for lines.Scan() { // what it printed before it died
			note()
		}
		_ = cmd.Wait()
		steps[step]++
		s, err := sqlitelease.Open(path, nil)
		if err != nil {
			t.Fatalf("killed in the step %q: %v", step, err)
		}
		if snap, err := s.Load(t.Context(), "killed"); err != nil || snap.Record.Epoch < last {
			t.Fatalf("killed in the step %q: the file has %+v, and %d was granted: %v", step, snap, last, err)
		}
		if _, err := lease.Break(t.Context(), s.Authority(), "killed", lease.Grace(0)); err != nil && lease.CodeOf(err) != lease.ErrNotPresent {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := query(t, path, "pragma integrity_check"); got != "ok" {
			t.Fatalf("killed in the step %q: %s", step, got)
		}
	}
	for _, step := range []string{"open", "acquire", "release", "close"} {
		if steps[step] == 0 && kills == 200 {
			t.Errorf("no process was killed in the step %q", step)
		}
	}
	t.Logf("%d kills in the steps %v, %d grants", kills, steps, grants)
}

// Files that cannot be used are refused with advice.
func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("not a database ", 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked")
	_ = os.WriteFile(linked, nil, 0o666)
	if err := os.Link(linked, linked+"2"); err != nil {
		t.Skip(err)
	}
	other, newer := filepath.Join(dir, "other"), filepath.Join(dir, "newer")
	exe(t, other, "create table lease (id int, tenant text)")
	exe(t, other, "create table customers (id integer primary key autoincrement)")
	if err := open(t, newer, nil).Close(); err != nil {
		t.Fatal(err)
	}
	exe(t, newer, "update lease_meta set schema = 99")
	for path, want := range map[string]string{
		"":                                  "must be the path of a file",
		dir:                                 "not a regular file",
		filepath.Join(dir, "missing", "db"): "no such file or directory",
		foreign:                             "not a SQLite database",
		linked:                              "2 hard links",
		other:                               "another program, with lease, customers",
		newer:                               "format 99, and this release knows formats up to 1",
	} {
		_, err := sqlitelease.Open(path, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, without %q", path, err, want)
		}
		if path != "" && !errors.As(err, new(*lease.PermanentError)) {
			t.Errorf("%s: a retry does not help: %v", path, err)
		}
	}
	if n := query(t, other, "select group_concat(name) || (select journal_mode from pragma_journal_mode) from sqlite_schema"); n != "lease,customers,sqlite_sequencedelete" {
		t.Errorf("Open has changed a database of another program: %s", n)
	}
	for _, path := range []string{"", ":memory:"} {
		if _, err := sqlitelease.Open(path, nil); lease.CodeOf(err) != lease.ErrOption || !strings.Contains(err.Error(), "Open.path") {
			t.Errorf("%q: %v", path, err)
		}
	}
	for field, o := range map[string]*sqlitelease.Options{
		"Options.Floor":              {Floor: "x"},
		"Options.Limits.MinDuration": {Limits: lease.Limits{MinDuration: -1}},
	} {
		var bad *lease.FieldError
		if _, err := sqlitelease.Open(filepath.Join(dir, "db"), o); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A file that this user cannot write is refused with advice.
func TestReadOnlyFile(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755); _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "db")
	_ = open(t, path, nil).Close()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(binary, program, 0o755), os.Chmod(path, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), childVariable+"=grant "+path)
	if os.Getuid() == 0 { // who may write everything
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "cannot be written") {
		t.Errorf("it said %q", out)
	}
}

// A locked file delays a request until its context ends, and the error says why.
func TestLockedFile(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	unlock := lock(t, path)
	shorthand.Eventually(t, "the error says why", func(ctx context.Context) error { // a busy machine may not reach the lock in time
		_, err := s.Load(ctx, "a")
		if errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "keeps the file locked") {
			return nil
		}
		return fmt.Errorf("the load of a locked file: %w", err)
	})
	unlock()
	if _, err := s.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// A symbolic link and a relative path lead to the same leases.
func TestTwoNames(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	acquire(t, s, "a", time.Minute)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	t.Chdir(filepath.Dir(path))
	for _, name := range []string{link, filepath.Base(path)} {
		if snap, err := open(t, name, nil).Load(t.Context(), "a"); err != nil || snap.Record.State != lease.Leased {
			t.Errorf("%s: %+v, %v", name, snap, err)
		}
	}
	if err := os.Link(path, path+".hard"); err != nil {
		t.Skip(err)
	}
	if _, err := s.Load(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("%v", err)
	}
}

// Names that are special in a URI are names of files like any other.
func TestOddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?mode=memory#c%20d&e.db")
	open(t, path, nil)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// Tokens rise when a copy is put back or overwrites the content of the file, which then keeps its inode, and when the
// file is deleted, even if the wall clock was set back. A store that has the file open notices that it is gone.
func TestTokensRiseAfterRestore(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	wall := time.Now().Add(time.Hour)
	s.SetClock("boot", func() time.Duration { return time.Hour }, func() time.Time { return wall })
	acquire(t, s, "a", time.Nanosecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	newest := uint64(0)
	for range 5 {
		newest = acquire(t, s, "b", time.Nanosecond).Epoch
	}
	for _, c := range []struct {
		what    string
		data    []byte
		removed bool
	}{
		{"a copy that overwrites the file", backup, false}, {"a copy", backup, true}, {"nothing", nil, true},
	} {
		if c.removed {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + suffix)
			}
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if c.data != nil {
			if err := os.WriteFile(path, c.data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if c.removed {
			_, err := s.Load(t.Context(), "a")
			shorthand.Says(t, err, nil, "open the store again")
		}
		s = open(t, path, nil)
		before := newest
		for _, name := range []string{"a", "b"} {
			r := acquire(t, s, name, time.Minute)
			if r.Epoch <= before {
				t.Errorf("%s: epoch %d of %s after %d", c.what, r.Epoch, name, before)
			}
			newest = max(newest, r.Epoch)
		}
	}
}

// Tokens rise, and versions do not recur, when an operator deletes the row of a lease, also above a floor.
func TestTokensOutliveTheRow(t *testing.T) {
	path := newPath(t)
	store := func(floor lease.Token) shorthand.Store { return open(t, path, &sqlitelease.Options{Floor: floor}) }
	remove := func() error { exe(t, path, "delete from lease where name = 'a'"); return nil }
	shorthand.TokensOutliveTheRecord(t, "a", store, map[string]func() error{"a deletion": remove})
}

// Within a boot, the wall clock does not matter. After a boot with the wall clock set back, time
// goes on from the last time in the file, so no lease gets a later end.
func TestClockSet(t *testing.T) {
	for _, boot := range []string{"first", ""} {
		steady, wall := time.Hour, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		s := open(t, newPath(t), nil)
		clock := func(boot string) {
			s.SetClock(boot, func() time.Duration { return steady }, func() time.Time { return wall })
		}
		now := func() time.Time {
			snap, err := s.Load(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return snap.Now
		}
		clock(boot)
		began := acquire(t, s, "a", 10*time.Second).Until.Add(-10 * time.Second)
		if !began.Equal(wall) {
			t.Errorf("boot %q: it is %v", boot, began)
		}
		for _, step := range []time.Duration{-time.Hour, time.Hour, 24 * time.Hour, -48 * time.Hour} {
			wall, steady = wall.Add(step), steady+time.Second
			began = began.Add(time.Second)
			if got := now(); !got.Equal(began) {
				t.Errorf("boot %q, wall clock set by %v: it is %v, and should be %v", boot, step, got, began)
			}
		}
		acquire(t, s, "b", time.Second) // stores the time
		steady = time.Minute
		clock(boot + "second") // with the wall clock a day behind
		if got := now(); !got.Equal(began) {
			t.Errorf("boot %q, after a boot: it is %v, and should be %v", boot, got, began)
		}
		steady += 7 * time.Second
		if snap, err := s.Load(t.Context(), "a"); err != nil || snap.Record.Remaining(snap.Now) != 0 {
			t.Errorf("boot %q: the lease lives longer: %+v, %v", boot, snap, err)
		}
	}
}

var (
	loadLeases   = flag.Int("load.leases", 1000, "leases that TestThousandLeases asks for")
	loadDuration = flag.Duration("load.duration", 10*time.Second, "the duration of each")
)

// A thousand leases in one process are renewed, and none is lost. With more than the file can carry, some are refused:
//
//	go test -run ThousandLeases -v . -load.leases 90000
func TestThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: *loadLeases, Duration: *loadDuration, Hold: 20 * time.Second, Refusals: *loadLeases > 1000}
	if testing.Short() {
		l.Leases, l.Hold = 100, 3*time.Second
	}
	l.Run(t, open(t, newPath(t), nil))
}

func Benchmark(b *testing.B) {
	s := open(b, newPath(b), nil)
	a, ctx := s.Authority(), b.Context()
	do := func(name string, req lease.Request) {
		if _, err := a.Do(ctx, name, req); err != nil {
			b.Error(err)
		}
	}
	b.Run("Renew", func(b *testing.B) {
		acquire(b, s, "renewed", time.Hour)
		for b.Loop() {
			do("renewed", shorthand.Renew(idA))
		}
		do("renewed", shorthand.Release(idA))
	})
	b.Run("AcquireRelease", func(b *testing.B) {
		for b.Loop() {
			do("acquired", shorthand.Acquire(idA, time.Hour))
			do("acquired", shorthand.Release(idA))
		}
	})
	b.Run("RenewParallel", func(b *testing.B) {
		var names atomic.Int64
		b.SetParallelism(50)
		b.RunParallel(func(p *testing.PB) {
			name := fmt.Sprint("renewed/", names.Add(1))
			acquire(b, s, name, time.Hour)
			for p.Next() {
				do(name, shorthand.Renew(idA))
			}
		})
	})
}
