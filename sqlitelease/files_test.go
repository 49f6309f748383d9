//go:build unix

package sqlitelease_test

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

var suffixes = []string{"", "-wal", "-shm", "-lock"}

// inChild starts a process that opens the store. The returned function lets it grant or release the lease a, and
// returns what it printed.
func inChild(t *testing.T, task, path string) func() string {
	t.Helper()
	cmd, out := start(t, task, path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("open\n"))); err != nil {
		t.Fatal(err)
	}
	return func() string {
		_ = in.Close()
		text, _ := io.ReadAll(out)
		_ = cmd.Wait()
		return strings.TrimSpace(string(text))
	}
}

// A process that reads its own files, as a backup or a checksum does, loses the POSIX locks of SQLite. Other
// processes must wait all the same until its transaction has ended. SPEC A2.
func TestRawReader(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, nil)
	before := acquire(t, s, "a", time.Minute)
	for _, suffix := range suffixes {
		release := inChild(t, "release", path)
		s.InTransaction(func() {
			f, err := os.Open(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Read(make([]byte, 100))
			_ = f.Close()
			if said := release(); !strings.Contains(said, "context deadline exceeded") {
				t.Errorf("after a read of leases.db%s, another process writes in the middle of a transaction: %s", suffix, said)
			}
		})
	}
	if said := inChild(t, "release", path)(); said != strconv.FormatUint(before.Epoch, 10) {
		t.Errorf("after the transactions: %s", said)
	}
	if r := acquire(t, s, "a", time.Minute); r.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d after %d", r.Epoch, before.Epoch)
	}
}

// If any of its files is removed or replaced while a store has it open, the store refuses each request at
// once, so that a holder learns of its loss at the next renewal. A grant to another process after that
// has a newer token. SPEC S3, H11.
func TestLostFiles(t *testing.T) {
	remove := func(files ...string) func(string) error {
		return func(path string) (err error) {
			for _, suffix := range files {
				err = errors.Join(err, os.Remove(path+suffix))
			}
			return err
		}
	}
	replace := func(suffix string) func(string) error {
		return func(path string) error {
			data, err := os.ReadFile(path + suffix)
			return errors.Join(err, os.WriteFile(path+".copy", data, 0o666), os.Rename(path+".copy", path+suffix))
		}
	}
	for what, lose := range map[string]func(path string) error{
		"file removed":              remove(""),
		"file renamed":              func(path string) error { return os.Rename(path, path+".old") },
		"all removed":               remove(suffixes...),
		"log removed":               remove("-wal"),
		"log and its index removed": remove("-wal", "-shm"),
		"index removed":             remove("-shm"),
		"lock removed":              remove("-lock"),
		"file replaced":             replace(""),
		"log replaced":              replace("-wal"),
		"index replaced":            replace("-shm"),
		"lock replaced":             replace("-lock"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, nil)
			acquire(t, s, "a", time.Nanosecond)
			if err := s.Close(); err != nil { // moves the log into the database
				t.Fatal(err)
			}
			s = open(t, path, nil)
			held := acquire(t, s, "a", time.Minute)
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			// The process that comes next knows nothing of s, and need not find the record of s.
			said := inChild(t, "grant", path)()
			if epoch, err := strconv.ParseUint(said, 10, 64); err == nil && epoch <= held.Epoch {
				t.Errorf("another process was granted epoch %d after %d", epoch, held.Epoch)
			} else if err != nil && !strings.Contains(said, "another holder") {
				t.Errorf("another process: %s", said)
			}
			for _, req := range []lease.Request{shorthand.Renew(idA), shorthand.Release(idA), {Action: lease.ActionChange, ID: idA, Proposed: idB}} {
				res, err := s.Authority().Do(t.Context(), "a", req)
				if code := lease.CodeOf(err); !code.Refusal() || res.Record.State.Locked() || res.Now.IsZero() || !strings.Contains(err.Error(), "start it again") {
					t.Errorf("%s: %+v, %v", req.Action, res, err)
				}
			}
			_, err := s.Authority().Do(t.Context(), "a", shorthand.Acquire(idB, time.Minute))
			if lease.CodeOf(err).Refusal() || !errors.As(err, new(*lease.PermanentError)) {
				t.Errorf("acquire: %v", err)
			}
			if _, err := s.Load(t.Context(), "a"); !errors.As(err, new(*lease.PermanentError)) {
				t.Errorf("load: %v", err)
			}
		})
	}
}

// A program that keeps a transaction open cannot make the log grow without bound: first, new grants are
// refused, and later renewals too. When it ends, the store goes on, and the log shrinks.
func TestLongReader(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, nil)
	s.SetLogLimits(8<<20, 9<<20)
	acquire(t, s, "held", time.Hour)
	reader := database(t, path)
	defer reader.Close()
	tx, err := reader.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("select count(*) from lease").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	renew, a := shorthand.Renew(idA), s.Authority()
	// The names are long, so that few grants fill the log.
	grant := func(i int) error {
		name := strconv.Itoa(i) + strings.Repeat("x", 1000)
		_, err := a.Do(t.Context(), name, shorthand.Acquire(idA, time.Nanosecond))
		return err
	}
	grants := 0
	for err = nil; err == nil; grants++ {
		err = grant(grants)
	}
	if !strings.Contains(err.Error(), "no grant, because the file -wal has grown to 8 MiB") || grants < 100 {
		t.Fatalf("after %d grants: %v", grants, err)
	}
	renewals := 0
	for err = nil; err == nil; renewals++ {
		_, err = a.Do(t.Context(), "held", renew)
	}
	if !strings.Contains(err.Error(), "no write, because the file -wal has grown to 9 MiB") || renewals < 10 {
		t.Fatalf("after %d renewals: %v", renewals, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, _ = a.Do(t.Context(), "held", renew) // is still refused, and shortens the log
	for i := range 2 {
		if err := grant(i); err != nil {
			t.Errorf("when the reader has ended: %v", err)
		}
	}
	if _, err := a.Do(t.Context(), "held", renew); err != nil {
		t.Errorf("when the reader has ended: %v", err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > 4<<20 {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
}

// A store that has the file open writes no more once a newer release has changed the format.
func TestFormatIsRaised(t *testing.T) {
	path := newPath(t)
	s := open(t, path, nil)
	acquire(t, s, "a", time.Minute)
	exe(t, path, "update lease_meta set schema = 2")
	_, err := s.Authority().Do(t.Context(), "a", shorthand.Release(idA))
	if !errors.As(err, new(*lease.PermanentError)) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("release: %v", err)
	}
	if state := query(t, path, "select record from lease where name = 'a'"); !strings.Contains(state, "leased") {
		t.Errorf("the record is %s", state)
	}
}
