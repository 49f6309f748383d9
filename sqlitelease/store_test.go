//go:build unix

package sqlitelease_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

// childVariable tells a copy of the test binary what to do: a word and a path.
const childVariable = "SQLITELEASE_CHILD"

func TestMain(m *testing.M) {
	if processes.Hold(func(path string) (processes.Store, error) { return openStore(path) }) {
		return
	}
	if task, path, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := child(task, path); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func openStore(path string) (*sqlitelease.Store, error) { return sqlitelease.Open(path, nil) }

// child is the main function of a copy of the test binary.
func child(task, path string) error {
	ctx := context.Background()
	switch task {
	case "write": // acquire and release until killed, and print the token of each grant
		s, err := openStore(path)
		if err != nil {
			return err
		}
		for {
			id := newID()
			res, err := s.Authority().Do(ctx, "killed", lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: lease.Infinite})
			if err != nil {
				return err
			}
			fmt.Println(res.Record.Epoch)
			if _, err := s.Authority().Do(ctx, "killed", lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
				return err
			}
		}
	case "fill": // write new names until the limit of the file size is reached
		limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		s, err := openStore(path)
		if err != nil {
			return err
		}
		for i := range 10000 {
			name := fmt.Sprintf("full/%d/%s", i, strings.Repeat("x", 800))
			if _, err := s.Authority().Do(ctx, name, lease.Request{Action: lease.ActionAcquire, Proposed: newID(), Duration: lease.Infinite}); err != nil {
				fmt.Println(i)
				return err
			}
		}
		return nil
	}
	_, err := openStore(path)
	return err
}

// start starts a child.
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

func newID() lease.ID { return lease.ID(uuid.New()) }

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

func exe(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func acquire(t testing.TB, s *sqlitelease.Store, name string, d time.Duration) (lease.Record, lease.ID) {
	t.Helper()
	id := newID()
	res, err := s.Authority().Do(t.Context(), name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d})
	if err != nil {
		t.Fatal(err)
	}
	return res.Record, id
}

func TestConformance(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	spoil := func(t testing.TB, name string) { exe(t, path, "update lease set record = '{' where name = ?", name) }
	store := func(t testing.TB) *sqlitelease.Store { return open(t, path, nil) }
	authority := func(t testing.TB) lease.Authority { return store(t).Authority() }
	o := &leasetest.Options{
		Unit: 500 * time.Millisecond,
		Store: leasetest.StoreHooks{
			Reopen: func(t testing.TB, s lease.Store) lease.Store {
				_ = s.(*sqlitelease.Store).Close()
				return store(t)
			},
			Another: func(t testing.TB, _ lease.Store) lease.Store { return store(t) },
			Corrupt: func(t testing.TB, _ lease.Store, name string) { spoil(t, name) },
		},
		Authority: leasetest.AuthorityHooks{
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return authority(t) },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority { return authority(t) },
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { spoil(t, name) },
			Put: func(t testing.TB, _ lease.Authority, name string, r lease.Record) {
				text, err := r.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				exe(t, path, "insert into lease select ?, version + 1, ? from lease_meta on conflict (name) do update set version = excluded.version, record = excluded.record", name, string(text))
				exe(t, path, "update lease_meta set version = version + 1")
			},
		},
	}
	if testing.Short() {
		o.Can = leasetest.Everything &^ leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	held := *o
	held.Lease.Authority = authority
	for what, test := range map[string]func(t *testing.T){
		"Store":     func(t *testing.T) { leasetest.TestStore(t, func(t testing.TB) lease.Store { return store(t) }, o) },
		"Authority": func(t *testing.T) { leasetest.TestAuthority(t, authority, o) },
		"Lease": func(t *testing.T) {
			leasetest.TestLease(t, func(t testing.TB, h leasetest.Holder) lease.Lease {
				l, err := session.New(h.Authority, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					_ = l.Close(ctx)
				})
				return l
			}, &held)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// SPEC A2: histories of eight stores are linearizable in the time of the file, through loads and
// swaps and through authorities that decide in one transaction.
func TestHistories(t *testing.T) {
	t.Parallel()
	runs := 300
	if testing.Short() {
		runs = 20
	}
	path := newPath(t)
	stores := make([]lease.Store, 8)
	for i := range stores {
		stores[i] = open(t, path, nil)
	}
	first, exchanges := rand.Uint64(), 0
	for i := range runs {
		seed := first + uint64(i)
		h := histories.Run(t.Context(), seed, fmt.Sprint("history-", i), stores, 10, 20*time.Millisecond)
		if err := h.Check(histories.Options{OwnClock: true}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		exchanges += h.Len()
	}
	t.Logf("%d histories of %d exchanges of %d stores are linearizable", runs, exchanges, len(stores))
}

// SPEC G1, G2, H9: holders in eight processes are paused, resumed and killed. No stale write passes
// the guard, and no holder believes that it holds the lease while another has it.
func TestHoldersInProcesses(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	path := newPath(t)
	open(t, path, nil)
	endpoints := make([]string, 8)
	for i := range endpoints {
		endpoints[i] = path
	}
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: time.Second}, rounds, func(r *rand.Rand) string {
		// A tool keeps the file locked for a while.
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		_ = tx.Rollback()
		return "locked file"
	})
}

// A process that is killed at any moment leaves the file usable at once, and every token that it
// printed is kept.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 20
	}
	path := newPath(t)
	s := open(t, path, nil)
	last, grants := uint64(0), 0
	for range kills {
		cmd, out := start(t, "write", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n, most := 0, 1+rand.IntN(20); n < most && lines.Scan(); n++ {
			grants++
			epoch, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil || epoch <= last {
				t.Fatalf("%q after %d: %v", lines.Text(), last, err)
			}
			last = epoch
		}
		time.Sleep(rand.N(5 * time.Millisecond))
		_ = cmd.Process.Kill()
		for lines.Scan() { // what it printed before it died
			if epoch, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
				last = max(last, epoch)
			}
		}
		_ = cmd.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		snap, err := s.Load(ctx, "killed")
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if snap.Record.Epoch < last {
			t.Fatalf("the file has epoch %d, and %d was granted", snap.Record.Epoch, last)
		}
		if _, err := lease.Break(t.Context(), s.Authority(), "killed", lease.Grace(0)); err != nil && lease.CodeOf(err) != lease.ErrNotPresent {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d grants", kills, grants)
}

// If no more can be written, the error says so, and what was granted before is kept.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	cmd, out := start(t, "fill", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(out)
	_ = cmd.Wait()
	count, said, _ := strings.Cut(string(text), "\n")
	n, err := strconv.Atoi(count)
	if err != nil || n == 0 || !strings.Contains(said, "free space") && !strings.Contains(said, "disk is full") {
		t.Fatalf("it said %q", text)
	}
	s, got := open(t, path, nil), 0
	for _, err := range s.List(t.Context(), "full/") {
		if err != nil {
			t.Fatal(err)
		}
		got++
	}
	if got < n {
		t.Errorf("%d leases of %d are kept", got, n)
	}
	acquire(t, s, "after", time.Minute)
	t.Logf("%d leases, then %s", n, said)
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
	for path, want := range map[string]string{
		"":                                  "must be the path of a file",
		dir:                                 "not a regular file",
		filepath.Join(dir, "missing", "db"): "no such file or directory",
		foreign:                             "not a SQLite database",
		linked:                              "2 hard links",
	} {
		_, err := sqlitelease.Open(path, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, without %q", path, err, want)
		}
		if path != "" && !errors.As(err, new(*lease.PermanentError)) {
			t.Errorf("%s: a retry does not help: %v", path, err)
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
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dir, err := os.MkdirTemp("/tmp", "readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "db")
	_ = open(t, path, nil).Close()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o644), os.WriteFile(binary, program, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), childVariable+"=open "+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "cannot be written") {
		t.Errorf("it said %q", out)
	}
}

// A locked file delays a request until its context ends, and the error says why.
func TestLockedFile(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "keeps the file locked") {
		t.Errorf("%v", err)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
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
	wd, _ := os.Getwd()
	relative, err := filepath.Rel(wd, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, relative} {
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

// Tokens rise when a copy is put back and when the file is deleted, and an open store notices both.
func TestTokensRiseAfterRestore(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	acquire(t, s, "a", time.Minute)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	newest := uint64(0)
	for i := range 5 {
		r, _ := acquire(t, s, fmt.Sprint("b", i), time.Minute)
		newest = max(newest, r.Epoch)
		_, _ = lease.Break(t.Context(), s.Authority(), "a", lease.Grace(0))
		if r, _ = acquire(t, s, "a", time.Minute); r.Epoch <= newest-1 {
			t.Fatal(r.Epoch, newest)
		}
		newest = max(newest, r.Epoch)
	}
	for what, data := range map[string][]byte{"a copy": backup, "nothing": nil} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		if data != nil {
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Load(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "open the store again") {
			t.Errorf("%s: %v", what, err)
		}
		s = open(t, path, nil)
		r, _ := acquire(t, s, "a", time.Minute)
		if r.Epoch <= newest {
			t.Errorf("%s: epoch %d after %d", what, r.Epoch, newest)
		}
		newest = r.Epoch
	}
}

// Floor raises the tokens of free names at once, and those of held names with the next grant.
func TestFloor(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	held, id := acquire(t, s, "held", time.Minute)
	_, _ = acquire(t, s, "ended", time.Nanosecond)
	floor := held.Epoch + 1e6
	s = open(t, path, &sqlitelease.Options{Floor: lease.TokenOf(floor)})
	for _, name := range []string{"new", "ended"} {
		if r, _ := acquire(t, s, name, time.Minute); r.Epoch <= floor {
			t.Errorf("%s: %d", name, r.Epoch)
		}
	}
	a := s.Authority()
	if res, err := a.Do(t.Context(), "held", lease.Request{Action: lease.ActionRenew, ID: id}); err != nil || res.Record.Epoch != held.Epoch {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := a.Do(t.Context(), "held", lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
		t.Error(err)
	}
	if r, _ := acquire(t, s, "held", time.Minute); r.Epoch <= floor {
		t.Errorf("held: %d", r.Epoch)
	}
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
		r, _ := acquire(t, s, "a", 10*time.Second)
		began := r.Until.Add(-10 * time.Second)
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

// A thousand leases in one process are renewed, and none is lost.
func TestThousandLeases(t *testing.T) {
	n, hold := 1000, 20*time.Second
	if testing.Short() {
		n, hold = 100, 3*time.Second
	}
	s := open(t, newPath(t), nil)
	d := 10 * time.Second
	sessions := make([]*session.Session, n)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range sessions {
		wg.Go(func() {
			l, err := s.Lease(fmt.Sprint("lease/", i), &session.Options{Duration: d})
			if err != nil {
				t.Error(err)
				return
			}
			l.OnLost(func(err error) { t.Error(err) })
			if ok, err := l.Acquire(t.Context()); err != nil || !ok {
				t.Error(ok, err)
			}
			sessions[i] = l
		})
	}
	wg.Wait()
	took := time.Since(began)
	time.Sleep(hold)
	began = time.Now()
	for _, l := range sessions {
		wg.Go(func() {
			if l == nil || !l.CheckAlive() {
				t.Error("a lease was lost")
				return
			}
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d leases: acquired in %v, held for %v, released in %v", n, took, hold, time.Since(began))
}

// A watch reports the change of another store.
func TestWatchAnotherStore(t *testing.T) {
	path := newPath(t)
	s, other := open(t, path, nil), open(t, path, nil)
	_, id := acquire(t, other, "a", time.Minute)
	changed, err := s.Watch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := other.Authority().Do(t.Context(), "a", lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Logf("signalled after %v", time.Since(began))
	case <-time.After(10 * time.Second):
		t.Error("no signal")
	}
	_ = s.Close()
	if _, open := <-changed; open {
		t.Error("the watch was not closed")
	}
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
		_, id := acquire(b, s, "renewed", time.Hour)
		for b.Loop() {
			do("renewed", lease.Request{Action: lease.ActionRenew, ID: id})
		}
		do("renewed", lease.Request{Action: lease.ActionRelease, ID: id})
	})
	b.Run("AcquireRelease", func(b *testing.B) {
		for b.Loop() {
			id := newID()
			do("acquired", lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Hour})
			do("acquired", lease.Request{Action: lease.ActionRelease, ID: id})
		}
	})
	b.Run("RenewParallel", func(b *testing.B) {
		b.SetParallelism(50)
		b.RunParallel(func(p *testing.PB) {
			name := newID().String()
			_, id := acquire(b, s, name, time.Hour)
			for p.Next() {
				do(name, lease.Request{Action: lease.ActionRenew, ID: id})
			}
		})
	})
}
