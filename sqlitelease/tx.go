package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencedlease/lease"
)

// A call is a function that waits for its turn in a transaction.
type call struct {
	ctx  context.Context
	f    func(*tx) error
	err  error
	done chan struct{}
}

// meta is the row of lease_meta. Times count from 1970.
type meta struct {
	file, boot      string
	offset, last    time.Duration
	floor, newest   int64 // epochs: newest is the highest that was written
	version, absent int64
	changed         bool
}

// A tx is a transaction, which holds the lock of the file. Calls that wait together share one, and its fsync.
type tx struct {
	s      *Store
	meta   meta
	now    time.Time
	failed error // an error of the file, after which nothing can be committed
}

// do runs f in a transaction that holds the lock of the file, and commits what f wrote. Once ctx is done,
// do returns, and f can still run. An error of f does not undo what other calls wrote.
func (s *Store) do(ctx context.Context, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{ctx: ctx, f: f, done: make(chan struct{})}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return lease.ErrClosed
	}
	s.queue = append(s.queue, c)
	if !s.working {
		s.working = true
		s.tasks.Go(s.work)
	}
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if s.locked.Load() {
			return fmt.Errorf("%w; %s", ctx.Err(), advice[sqlite3.SQLITE_BUSY].text)
		}
		return ctx.Err()
	}
}

// maxBatch bounds how long one transaction keeps the file locked.
const maxBatch = 128

// work runs the calls in the queue until there are none.
func (s *Store) work() {
	for {
		s.mu.Lock()
		n := min(len(s.queue), maxBatch)
		batch := s.queue[:n:n]
		s.queue = s.queue[n:]
		if n == 0 {
			s.queue, s.working = nil, false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if err := s.transact(batch); err != nil {
			for _, c := range batch {
				c.err = err
			}
		}
		for _, c := range batch {
			close(c.done)
		}
	}
}

// transact runs a batch in one transaction. After an error, the calls may not have been committed.
func (s *Store) transact(batch []*call) error {
	if err := s.begin(batch); err != nil {
		return err
	}
	ctx := context.Background()
	t := &tx{s: s}
	err := t.run(ctx, batch)
	if err == nil && t.meta.changed {
		if err = t.saveMeta(ctx); err == nil {
			_, err = s.conn.ExecContext(ctx, "commit")
		}
		if err == nil {
			s.watches.poke()
			return nil
		}
	}
	_, _ = s.conn.ExecContext(ctx, "rollback") // fails if SQLite has rolled back itself
	return err
}

// begin locks the file. It retries until the contexts of all calls are done or the store is closed.
func (s *Store) begin(batch []*call) error {
	defer s.locked.Store(false)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		_, err := s.conn.ExecContext(context.Background(), "begin immediate")
		if err == nil || !isBusy(err) {
			return err
		}
		s.locked.Store(true)
		waiting := false
		for _, c := range batch {
			waiting = waiting || c.ctx.Err() == nil
		}
		if !waiting {
			return err
		}
		select {
		case <-s.ended:
			return lease.ErrClosed
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

func (t *tx) run(ctx context.Context, batch []*call) error {
	if err := t.s.checkFile(); err != nil {
		return err
	}
	m := &t.meta
	err := t.s.conn.QueryRowContext(ctx, `select file, boot, "offset", last, floor, newest, version, absent from lease_meta`).
		Scan(&m.file, &m.boot, &m.offset, &m.last, &m.floor, &m.newest, &m.version, &m.absent)
	if err != nil {
		return err
	}
	if t.now, err = t.s.clock.now(m); err != nil {
		return err
	}
	for _, c := range batch {
		if c.err = c.ctx.Err(); c.err == nil {
			c.err = c.f(t)
		}
		if t.failed != nil {
			return t.failed
		}
	}
	return nil
}

func (t *tx) saveMeta(ctx context.Context) error {
	m := t.meta
	_, err := t.s.conn.ExecContext(ctx, `update lease_meta set file = ?, boot = ?, "offset" = ?, last = ?, floor = ?, newest = ?, version = ?, absent = ?`,
		m.file, m.boot, int64(m.offset), int64(m.last), m.floor, m.newest, m.version, m.absent)
	return err
}

// adopt begins a new life of the file, in which every token and version is new.
func (t *tx) adopt(identity string) {
	if _, err := t.s.conn.ExecContext(context.Background(), "delete from lease"); err != nil {
		t.failed = err
	}
	m := &t.meta
	m.floor = max(m.floor, m.newest, t.now.UnixMicro())
	m.version = max(m.version+1, t.now.UnixMicro())
	m.file, m.absent, m.changed = identity, m.version, true
}

// load reads the record of a name and the time. A record that has ended and is below the floor counts as
// forgotten, so that no renewal gets a token from below the floor.
func (t *tx) load(name string) (lease.Snapshot, error) {
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

func (t *tx) store(name string, r lease.Record) (lease.Snapshot, error) {
	text, err := r.MarshalJSON()
	if err != nil {
		return lease.Snapshot{}, err
	}
	t.meta.version++
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
