package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/session"
)

// Options configure a [Store]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Limits restricts the durations that an authority over the Store grants. Default: no limits.
	Limits lease.Limits

	// Floor is a token. All tokens that are granted from now on are newer. If the file may be an old copy, set
	// Floor to the newest token that any resource has seen. The file stores the highest Floor with which it was
	// opened. A lease that is already held does not change its token. Default: none.
	Floor lease.Token

	// AllowNetwork permits a file on a network file system. All processes that open this file must run on the
	// same machine, and the file system must support locks between them. Default: false.
	AllowNetwork bool
}

// A Store stores leases in a SQLite file. It implements [lease.Store], [lease.Watcher], [lease.Lister] and
// [lease.Limiter], and is safe for concurrent use by several goroutines.
type Store struct {
	limits  lease.Limits
	floor   uint64 // the epoch of Options.Floor
	watches engine.Poller
	gate    *engine.Gate
	locked  atomic.Bool // whether begin waits for another process

	// Only the worker uses these fields, while it has the lock of the file.
	files  files
	lock   lockFile
	clock  *clock
	db     *sql.DB
	conn   *sql.Conn
	polled int64     // the version in lease_meta up to which all changes of watched names have been signalled
	now    time.Time // the time of the leases in the last transaction that read the clock
	logs   logLimits

	resumes time.Time // until this time, other stores may lock the file

	mu      sync.Mutex
	most    int // the largest number of calls in one transaction
	queue   []*call
	working bool
	closed  bool
	ended   chan struct{} // closed by Close
	tasks   sync.WaitGroup
}

// openPatience is how long Open and Close wait for a lock of another process.
const openPatience = 10 * time.Second

// Open opens the file, or creates it if it does not exist. The folder must exist. Open rejects a database
// that has tables of another program, or that a newer release of this package has written. If another process
// locks the file for 10 s, Open returns an error. If an option is out of range, the error is a
// [*lease.FieldError].
func Open(path string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	lowest, err := engine.CheckOptions(o.Limits, 0, o.Floor, engine.HighestFloor)
	if err != nil {
		return nil, err
	}
	if path == "" || path == ":memory:" {
		return nil, &lease.FieldError{Field: "Open.path", Value: strconv.Quote(path), Bound: "must be the path of a file; package memory has leases without a file", Code: lease.ErrOption}
	}
	s := &Store{limits: o.Limits, floor: lowest, logs: defaultLogLimits, ended: make(chan struct{})}
	s.watches.Every, s.watches.Read = pollInterval, s.poll
	s.setBatch(maxBatch)
	if err := s.prepare(path, o.AllowNetwork); err != nil {
		return nil, describeError("open "+strconv.Quote(path), lease.Permanent(err))
	}
	if err := s.connect(); err != nil {
		if errors.Is(err, errForeign) && s.lock.made {
			err = errors.Join(err, os.Remove(s.files.path+lockSuffix))
		}
		return nil, describeError("open "+strconv.Quote(s.files.path), err)
	}
	err = s.do(context.Background(), engine.Request{}, func(t *tx) error {
		if int64(lowest) > t.meta.floor {
			t.meta.floor, t.meta.changed = int64(lowest), true
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(describeError("open "+strconv.Quote(s.files.path), err), s.Close())
	}
	return s, nil
}

func (s *Store) prepare(path string, network bool) error {
	// Do not open a file that exists. Closing it would drop the locks that SQLite has on it for another Store of
	// this process.
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			_ = f.Close()
		}
		if err == nil || errors.Is(err, os.ErrExist) { // if the file exists, another process has just created it
			info, err = os.Stat(path)
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: the folder must exist", err)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if s.files.path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	kind, err := networkFileSystem(filepath.Dir(s.files.path))
	if err != nil {
		return err
	}
	if kind != "" && !network {
		return fmt.Errorf("the file is on a network file system (%s), whose locks do not protect leases: use a local disk, or another store; see Options.AllowNetwork", kind)
	}
	identity, links, err := identify(s.files.path)
	if err != nil {
		return err
	}
	if links > 1 {
		return errLinks(links)
	}
	s.files.identity = identity
	if s.clock, err = newClock(); err != nil {
		return err
	}
	s.lock, err = openLockFile(s.files.path)
	return err
}

// format is the version of the format of the tables. A release rejects files with a later format.
const format = 1

const tables = `
create table if not exists lease (
	name text not null primary key, version integer not null, record text not null
) strict, without rowid;
create table if not exists lease_meta (
	one integer primary key check (one = 1), schema integer not null, file text not null, boot text not null,
	"offset" integer not null, last integer not null, floor integer not null, newest integer not null,
	version integer not null, absent integer not null
) strict;
-- Tokens do not fall, and versions do not recur, if an operator deletes a row.
create trigger if not exists lease_deleted after delete on lease begin
	update lease_meta set floor = max(floor, newest), version = version + 1, absent = version + 1;
end;
insert into lease_meta values (1, 1, '', '', 0, 0, 0, 0, 0, 0) on conflict do nothing`

// connect opens the database while it has the lock of the file. After an error, the database is closed.
func (s *Store) connect() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.disconnect())
		}
	}()
	query := fmt.Sprintf("mode=rw&_pragma=busy_timeout(0)&_pragma=synchronous(full)&_pragma=journal_size_limit(%d)", logKept)
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.files.path), RawQuery: query}
	if s.db, err = sql.Open("sqlite", u.String()); err != nil {
		return err // only if this driver does not exist
	}
	return s.patiently(func() error { return s.setUp(context.Background()) })
}

// The method patiently locks the file and calls f. If another process has locked the file or the database,
// the method tries again for the time openPatience.
func (s *Store) patiently(f func() error) error {
	for began := time.Now(); ; time.Sleep(longestPoll) {
		locked, err := s.lock.try()
		if locked {
			err = f()
			s.lock.unlock()
		} else if err == nil {
			s.lock.ask()
			err = errLocked
		}
		if err == nil || !isBusy(err) || time.Since(began) > openPatience {
			return err
		}
	}
}

// disconnect locks the file, closes the database, and unlocks the file. When the last connection to a
// database is closed, SQLite moves the log into the database. The lock makes sure that no other process uses
// the log meanwhile.
func (s *Store) disconnect() error {
	if s.conn == nil { // nothing was opened
		return errors.Join(s.db.Close(), s.lock.f.Close())
	}
	err := s.patiently(func() error { return errors.Join(s.conn.Close(), s.db.Close()) })
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%w, so it stays open in this process", err)
	}
	return errors.Join(err, s.lock.f.Close())
}

func (s *Store) setUp(ctx context.Context) (err error) {
	if s.conn == nil {
		if err := s.files.removeStale(); err != nil {
			return err
		}
		if s.conn, err = s.db.Conn(ctx); err != nil {
			return err
		}
	}
	if err := s.checkTables(ctx); err != nil {
		return err
	}
	// Without this setting, SQLite deletes the log when the last connection to the database is closed.
	// However, SQLite does not see the connection of a process that has lost its locks. That process would
	// continue to write to the deleted log.
	err = s.conn.Raw(func(driver any) error {
		_, err := driver.(sqlite.FileControl).FileControlPersistWAL("main", 1)
		return err
	})
	if err != nil {
		return err
	}
	var mode string
	if err := s.conn.QueryRowContext(ctx, "pragma journal_mode=wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode is %s, and cannot be changed to wal", mode)
	}
	if _, err := s.conn.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	if _, err = s.conn.ExecContext(ctx, tables); err == nil {
		_, err = s.conn.ExecContext(ctx, "commit")
	}
	if err != nil {
		_, _ = s.conn.ExecContext(ctx, "rollback")
		return err
	}
	if err := s.files.remember(s.lock); err != nil {
		return err
	}
	return s.files.check()
}

var errForeign = errors.New("the file is a database of another program")

// checkSQL returns the tables of other programs, at most five, and how many tables lease_meta there are. A table
// lease is ours only if there is a table lease_meta, too.
const checkSQL = `
select coalesce(group_concat(name, ', '), ''), (select count(*) from sqlite_schema where name = 'lease_meta')
from (
	select name from sqlite_schema where name not like 'sqlite@_%' escape '@' and not (
		name in ('lease', 'lease_deleted', 'lease_meta') and exists (select 1 from sqlite_schema where name = 'lease_meta'))
	order by rowid limit 5
)`

// checkTables returns an error if the database belongs to another program or a newer release. Another program
// could use a different SQLite library, and this process would not see the locks of that library.
func (s *Store) checkTables(ctx context.Context) error {
	var others string
	var ours int
	if err := s.conn.QueryRowContext(ctx, checkSQL).Scan(&others, &ours); err != nil {
		return err
	}
	if others != "" {
		return lease.Permanent(fmt.Errorf("%w, with %s: leases need a file of their own, so name another one", errForeign, others))
	}
	if ours == 0 {
		return nil
	}
	var schema int
	if err := s.conn.QueryRowContext(ctx, "select schema from lease_meta").Scan(&schema); err != nil {
		return err
	}
	return checkFormat(schema)
}

func checkFormat(schema int) error {
	if schema > format {
		return lease.Permanent(fmt.Errorf("the file has format %d, and this release knows formats up to %d: use the release that wrote it, or a newer one", schema, format))
	}
	return nil
}

// Lease returns a Session for the lease with the given name. The argument o may be nil. The errors are those
// of [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Limits returns the Limits of the Options.
func (s *Store) Limits() lease.Limits { return s.limits }

// Close ends all watches, waits for the running transaction, and closes the file. Close the Sessions of the
// Store before you close the Store, because a closed Store returns [lease.ErrClosed] from every request.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.ended)
	s.mu.Unlock()
	s.watches.Close()
	s.tasks.Wait()
	return describeError("close", s.disconnect())
}
