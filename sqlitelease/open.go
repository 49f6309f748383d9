package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/engines"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Limits restricts the durations that an authority over the Store grants. Default: no limits.
	Limits lease.Limits

	// Floor is older than every token that is granted from now on. Set it to the newest token that any
	// resource has seen if the file could be older. The file keeps the highest Floor that it was opened
	// with. A lease in force keeps its token until it ends. Default: none.
	Floor lease.Token

	// AllowNetwork opens a file on a network file system. All processes that open it must then run
	// on one machine, and the file system must keep the locks of that machine. Default: false.
	AllowNetwork bool
}

// A Store keeps leases in a SQLite file. It implements [lease.Store], [lease.Watcher],
// [lease.Lister] and [lease.Limiter], and is safe for concurrent use by several goroutines.
type Store struct {
	path     string
	identity string
	limits   lease.Limits
	clock    *clock
	db       *sql.DB
	conn     *sql.Conn // of the worker
	watches  watches
	locked   atomic.Bool // begin waits for another process

	mu      sync.Mutex
	queue   []*call
	working bool
	closed  bool
	ended   chan struct{} // closed by Close
	tasks   sync.WaitGroup
}

// openPatience is how long Open waits for a lock of another process.
const openPatience = 10 * time.Second

// Open opens the file, or makes it if there is none. The folder must exist. If another process keeps the
// file locked, Open gives up after 10 s. For an option out of range, the error is a [*lease.FieldError].
func Open(path string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	if bad := (*lease.FieldError)(nil); errors.As(o.Limits.Validate(), &bad) {
		bad.Field = "Options." + bad.Field
		return nil, bad
	}
	lowest, err := engines.Floor(o.Floor, math.MaxInt64-1)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, &lease.FieldError{Field: "Open.path", Value: `""`, Bound: "must be the path of a file", Code: lease.ErrOption}
	}
	s := &Store{limits: o.Limits, ended: make(chan struct{})}
	if err := s.prepare(path, o.AllowNetwork); err != nil {
		return nil, explain("open "+strconv.Quote(path), lease.Permanent(err))
	}
	if err := s.connect(int64(lowest)); err != nil {
		if s.conn != nil {
			_ = s.conn.Close()
		}
		if s.db != nil {
			_ = s.db.Close()
		}
		return nil, explain("open "+strconv.Quote(s.path), err)
	}
	return s, nil
}

// prepare makes the file if needed, and checks that it can be used.
func (s *Store) prepare(path string, network bool) error {
	// A file that is there is not opened here: to close it would drop the locks that another Store of
	// this process has.
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			_ = f.Close()
		}
		if err == nil || errors.Is(err, os.ErrExist) { // else another process has just made it
			info, err = os.Stat(path)
		}
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: the file and its folder must be writable for this user", err)
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
	if s.path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	kind, err := networkFileSystem(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	if kind != "" && !network {
		return fmt.Errorf("the file is on a network file system (%s), whose locks do not protect leases: use a local disk, or another store; see Options.AllowNetwork", kind)
	}
	if s.identity, _, err = identify(s.path); err != nil {
		return err
	}
	if err := s.checkFile(); err != nil {
		return err
	}
	s.clock, err = newClock()
	return err
}

// checkFile returns an error if the path leads to another file than was opened, or to one with two names.
func (s *Store) checkFile() error {
	identity, links, err := identify(s.path)
	switch {
	case err != nil:
		return lease.Permanent(fmt.Errorf("the file was deleted while it was open: %w; open the store again", err))
	case identity != s.identity:
		return lease.Permanent(errors.New("the file was replaced while it was open: open the store again"))
	case links > 1:
		return lease.Permanent(fmt.Errorf("the file has %d hard links, and SQLite needs a single one: remove the others, or use symbolic links", links))
	}
	return nil
}

const schema = `
create table if not exists lease (
	name text not null primary key, version integer not null, record text not null
) strict, without rowid;
create table if not exists lease_meta (
	one integer primary key check (one = 1), schema integer not null, file text not null, boot text not null,
	"offset" integer not null, last integer not null, floor integer not null, newest integer not null,
	version integer not null, absent integer not null
) strict;
-- An error here means that a table is another program's.
select name, version, record from lease limit 0;
select schema, file, boot, "offset", last, floor, newest, version, absent from lease_meta limit 0;
-- Tokens do not fall, and versions do not recur, if an operator deletes a row.
create trigger if not exists lease_deleted after delete on lease begin
	update lease_meta set floor = max(floor, newest), version = version + 1, absent = version + 1;
end;
insert into lease_meta values (1, 1, '', '', 0, 0, 0, 0, 0, 0) on conflict do nothing`

func (s *Store) connect(lowest int64) (err error) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: "mode=rw&_pragma=busy_timeout(0)&_pragma=synchronous(full)"}
	if s.db, err = sql.Open("sqlite", u.String()); err != nil {
		return err
	}
	ctx := context.Background()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if err = s.setUp(ctx); err == nil {
			break
		}
		if !isBusy(err) || time.Since(began) > openPatience {
			return err
		}
	}
	return s.do(ctx, func(t *tx) error {
		if t.meta.file != s.identity || t.meta.version == 0 {
			t.adopt(s.identity)
		}
		if lowest > t.meta.floor {
			t.meta.floor, t.meta.changed = lowest, true
		}
		return nil
	})
}

// setUp connects, and makes the tables.
func (s *Store) setUp(ctx context.Context) (err error) {
	if s.conn == nil {
		if s.conn, err = s.db.Conn(ctx); err != nil {
			return err
		}
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
	if _, err = s.conn.ExecContext(ctx, schema); err == nil {
		_, err = s.conn.ExecContext(ctx, "commit")
	}
	if err != nil {
		_, _ = s.conn.ExecContext(ctx, "rollback")
	}
	return err
}

// Lease returns a Session that can hold the named lease, or an error of [session.New]. o may be nil.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Limits returns the Limits from the Options.
func (s *Store) Limits() lease.Limits { return s.limits }

// Close ends all watches, waits for the transaction under way, and closes the file. Later calls return
// [lease.ErrClosed]. Close the Sessions first.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.ended)
	s.mu.Unlock()
	s.tasks.Wait()
	s.watches.stop()
	return errors.Join(s.conn.Close(), s.db.Close())
}
