package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// meta is the row of lease_meta. Its times are durations since 1970.
type meta struct {
	file, boot      string
	offset, last    time.Duration
	floor, newest   int64 // newest is the highest epoch that was written
	version, absent int64
	changed         bool
}

// A tx is a transaction, which holds the lock of the file. Calls that wait together share a transaction and
// its fsync.
type tx struct {
	s       *Store
	meta    meta
	began   int64     // the version in meta at the beginning; -1 after adopt has deleted all records
	now     time.Time // zero before tick has read the clock
	written []written // the records that were written
	failed  error     // an error of the file, after which the transaction cannot be committed
}

type written struct {
	name    string
	version int64
}

// transact runs a batch of calls in one transaction. After an error, their changes may not have been
// committed.
func (s *Store) transact(batch []*call) error {
	if err := s.begin(batch); err != nil {
		return err
	}
	defer s.end()
	ctx := context.Background()
	t := &tx{s: s}
	err := t.run(ctx, batch)
	if err == nil && t.meta.changed {
		if err = t.commit(ctx); err == nil {
			return nil
		}
	}
	_, _ = s.conn.ExecContext(ctx, "rollback") // fails if SQLite has already rolled back
	s.shortenLog(ctx)
	return err
}

// commit commits the transaction, and then checks the files again. If a file was replaced meanwhile, the
// commit went to a file that no other process will read.
func (t *tx) commit(ctx context.Context) error {
	m := t.meta
	_, err := t.s.conn.ExecContext(ctx, `update lease_meta set file = ?, boot = ?, "offset" = ?, last = ?, floor = ?, newest = ?, version = ?, absent = ?`,
		m.file, m.boot, int64(m.offset), int64(m.last), m.floor, m.newest, m.version, m.absent)
	if err != nil {
		return err
	}
	if _, err := t.s.conn.ExecContext(ctx, "commit"); err != nil {
		return err
	}
	if err := t.s.check(); err != nil {
		return err
	}
	t.signalWritten()
	return t.s.lock.write(t.meta.version, max(t.meta.floor, t.meta.newest))
}

func (t *tx) run(ctx context.Context, batch []*call) error {
	if err := t.s.check(); err != nil {
		return err
	}
	version, epoch, err := t.s.lock.read()
	if err != nil {
		return err
	}
	m, schema := &t.meta, 0
	err = t.s.conn.QueryRowContext(ctx, `select schema, file, boot, "offset", last, floor, newest, version, absent from lease_meta`).
		Scan(&schema, &m.file, &m.boot, &m.offset, &m.last, &m.floor, &m.newest, &m.version, &m.absent)
	if err != nil {
		return err
	}
	if err := checkFormat(schema); err != nil { // since Open, a newer release may have changed the file
		return err
	}
	if t.began = m.version; m.file != t.s.files.identity || m.version < max(version, 1) {
		if err := t.adopt(version, epoch); err != nil {
			return err
		}
	}
	for _, c := range batch {
		if c.err = c.ctx.Err(); c.err == nil {
			c.ran, c.err = true, c.f(t)
		}
		if t.failed != nil {
			return t.failed
		}
	}
	return nil
}

// The method adopt deletes all records. All later tokens and versions are then newer than the tokens and
// versions in the database and in the lock file. It is called for three kinds of files: a new file, a copied
// file, and a file that is older than the state in the lock file, for example after a backup was restored.
func (t *tx) adopt(version, epoch int64) error {
	if err := t.tick(); err != nil {
		return err
	}
	if _, err := t.s.conn.ExecContext(context.Background(), "delete from lease"); err != nil {
		return err
	}
	m := &t.meta
	m.floor = max(m.floor, m.newest, epoch, t.now.UnixMicro())
	m.version = max(m.version+1, version+1, t.now.UnixMicro())
	m.file, m.absent, m.changed = t.s.files.identity, m.version, true
	t.began = -1
	return nil
}

// tick reads the clock, but only once in a transaction.
func (t *tx) tick() (err error) {
	if t.now.IsZero() {
		if t.now, err = t.s.clock.now(&t.meta); err != nil {
			t.failed = err
		}
		t.s.now = t.now
	}
	return err
}

// The method check returns an error if a file on the disk was replaced or deleted. If the error is a
// goneError, the method adds the time of the last transaction that read the clock.
func (s *Store) check() error {
	err := s.files.check()
	if gone := (*goneError)(nil); errors.As(err, &gone) {
		gone.now = s.now
	}
	return err
}

// load reads the record of a name, and the time. If a lease has ended and its epoch is below the floor, load
// returns a record with the floor instead, so that no new token is below the floor.
func (t *tx) load(name string) (lease.Snapshot, error) {
	if err := t.tick(); err != nil {
		return lease.Snapshot{}, err
	}
	var version int64
	var text string
	err := t.s.conn.QueryRowContext(context.Background(), "select version, record from lease where name = ?", name).Scan(&version, &text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Snapshot{Record: lease.Record{Epoch: uint64(t.meta.floor)}, Version: "absent-" + strconv.FormatInt(t.meta.absent, 10), Now: t.now}, nil
	case err != nil:
		t.failed = err
		return lease.Snapshot{}, err
	}
	record, err := parse(name, text)
	if err != nil {
		return lease.Snapshot{}, err
	}
	if record.Epoch < uint64(t.meta.floor) && record.Remaining(t.now) == 0 {
		record = lease.Record{Epoch: uint64(t.meta.floor)}
	}
	return lease.Snapshot{Record: record, Version: strconv.FormatInt(version, 10), Now: t.now}, nil
}

func parse(name, text string) (r lease.Record, err error) {
	if err = r.UnmarshalJSON([]byte(text)); err == nil {
		err = r.Validate()
	}
	if err != nil {
		if lease.CodeOf(err) != lease.ErrCorrupt {
			err = fmt.Errorf("%w: %w", lease.ErrCorrupt, err)
		}
		return lease.Record{}, fmt.Errorf("sqlitelease: the row of %q in table lease: %w; correct it, or delete the row to free the lease", name, err)
	}
	return r, nil
}

// store writes the record r, which replaces the record old.
func (t *tx) store(name string, old, r lease.Record) (lease.Snapshot, error) {
	if r.Epoch > old.Epoch { // a grant
		r.Epoch = max(r.Epoch, t.s.floor+1)
	}
	if err := t.s.logs.check(t.s.files.logSize(), r.Epoch > old.Epoch); err != nil {
		return lease.Snapshot{}, err
	}
	text, err := r.MarshalJSON()
	if err != nil {
		return lease.Snapshot{}, err
	}
	t.meta.version++
	t.written = append(t.written, written{name, t.meta.version})
	t.meta.newest = max(t.meta.newest, int64(r.Epoch))
	t.meta.changed = true
	_, err = t.s.conn.ExecContext(context.Background(),
		"insert into lease values (?, ?, ?) on conflict (name) do update set version = excluded.version, record = excluded.record",
		name, t.meta.version, string(text))
	if err != nil {
		t.failed = err
		return lease.Snapshot{}, err
	}
	return lease.Snapshot{Record: r, Version: strconv.FormatInt(t.meta.version, 10), Now: t.now}, nil
}
