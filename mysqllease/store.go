package mysqllease

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/session"
)

// Options configure a [Store]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Connections is the maximum number of connections to the server. Default: 8.
	Connections int

	// Limits restricts the durations that an authority over the Store grants. Default: no limits.
	Limits lease.Limits

	// Floor is a token. All tokens that this Store grants from now on are newer, even those of a lease that
	// exists already. If leases move here from another store, set Floor to the newest token that any resource
	// has seen. All Stores with the same tables must have the same Floor. Default: none.
	Floor lease.Token

	// PollInterval is the time from one poll of the watched leases to the next. Default: 250 ms.
	PollInterval time.Duration

	// Logger receives a warning, at most once a minute, if the server's clock is behind the times of the
	// records. Default: slog.Default().
	Logger *slog.Logger
}

// A Store stores leases in MySQL or MariaDB. It implements [lease.Store], [lease.Watcher] and [lease.Lister],
// and is safe for concurrent use by several goroutines.
type Store struct {
	db       *sql.DB
	gate     *engine.Gate
	limits   lease.Limits
	floor    uint64 // the epoch of Options.Floor
	clock    engine.LateClock
	renewals engine.Batcher[renewal, int64]
	poller   engine.Poller
	closed   atomic.Bool

	authority lease.Authority
}

// New returns a Store that has its own connections. It sends no request. New copies c, which must name the
// database that has the tables of this package. If c has no Timeout, an attempt to connect ends after two
// seconds. The Store sets the session variables on which leases depend, such as the isolation level, so c
// need not set them. If c is nil or an option is out of range, New returns a [*lease.FieldError]. If c is
// malformed, New returns the error of the driver.
func New(c *mysql.Config, o *Options) (*Store, error) {
	connector, err := newConnector("New", c)
	if err != nil {
		return nil, err
	}
	return newStore(connector, o)
}

func newStore(c driver.Connector, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	floor, err := engine.CheckOptions(o.Limits, 0, o.Floor, engine.HighestFloor)
	switch {
	case err != nil:
		return nil, err
	case o.Connections < 0:
		return nil, engine.OptionError("Connections", strconv.Itoa(o.Connections), "must not be negative")
	case o.PollInterval < 0:
		return nil, engine.OptionError("PollInterval", o.PollInterval.String(), "must not be negative")
	}
	size := cmp.Or(o.Connections, defaultConnections)
	s := &Store{db: sql.OpenDB(c), gate: engine.NewGate(size), limits: o.Limits, floor: floor,
		clock: engine.LateClock{Server: "MySQL", Logger: o.Logger, Most: engine.DefaultMemory}}
	s.db.SetMaxOpenConns(size)
	s.db.SetMaxIdleConns(size)
	s.db.SetConnMaxLifetime(connectionLifetime)
	s.renewals = engine.Batcher[renewal, int64]{Send: s.renewMany, Kind: engine.Request{Urgent: true, Renewals: 1}, Gate: s.gate,
		Few: max(1, s.gate.Spare()), Most: mostRenewals}
	s.poller.Every, s.poller.Read = cmp.Or(o.PollInterval, defaultPollInterval), s.poll
	s.authority = engine.NewAuthority(s, s.renew, nil)
	return s, nil
}

const (
	defaultConnections  = 8
	connectionLifetime  = 3 * time.Minute // short, to follow a proxy or a change of the DNS
	defaultPollInterval = 250 * time.Millisecond
	mostRenewals        = 500 // the largest number of leases in one statement
)

// Lease returns a Session for the lease with the given name. If o is nil, the Session has the default
// options. If name is malformed or an option is out of range, the error wraps a [*lease.FieldError].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The authority is also a [lease.Watcher] and a
// [lease.Lister].
//
// Unlike lease.NewAuthority(s), it does not load the record before each renewal, change or release, but
// starts from the last record that the Store has written. If that record is out of date, the authority loads
// the current record and tries again, so it never refuses a request because of an outdated record.
func (s *Store) Authority() lease.Authority { return s.authority }

// Close ends all watches and closes all connections. It releases no lease. Later requests fail with an error
// that wraps [lease.ErrClosed]. Close always returns nil.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.poller.Close()
	s.renewals.Close()
	_ = s.db.Close()
	return nil
}

// Limits returns the Limits of the Options.
func (s *Store) Limits() lease.Limits { return s.limits }

// clockSQL is the time of the server in microseconds. Unlike NOW, SYSDATE reads the clock while the statement
// is running, which is after the statement has locked the row.
const clockSQL = `timestampdiff(microsecond, '1970-01-01', sysdate(6))`

// stateSQL is the state of a row. In an [engine.Row], an empty state means that there is no row. If a person has
// written an empty state, stateSQL is therefore another text, which is no state either.
const stateSQL = `case l.state when '' then 'empty' else l.state end`

// The query loadSQL waits until no other transaction has locked the row, because the other transaction may
// have renewed the lease in time but not committed the renewal yet. Without the wait, Load could report such
// a lease as expired. A read-only server refuses the query, because a replica could answer with an outdated
// record.
const loadSQL = `
select coalesce(` + stateSQL + `, ''), coalesce(l.owner, ''), coalesce(l.id, ''), coalesce(l.epoch, f.epoch), coalesce(l.duration, 0),
	l.until, coalesce(l.nanos, 0), coalesce(l.changed, f.changed), ` + clockSQL + `
from lease_floor f left join lease_row l on l.name = ? where f.one = 1 and lease_writable() lock in share mode`

// Load returns the record of the lease with the given name, and the time of the server. If the server's clock
// was set back, Load can return the end of the lease instead, as [engine.LateClock] describes.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	var r engine.Row
	err := s.do(ctx, engine.Request{}, func(c *sql.Conn) error {
		return scanRow(&r, c.QueryRowContext(ctx, loadSQL, []byte(name)).Scan)
	})
	if err != nil {
		return lease.Snapshot{}, describeError("load", name, err)
	}
	return s.snapshot(name, r)
}

type scanner = func(dest ...any) error

// The function scanRow scans a row of loadSQL or listSQL. The time of a change is also the version of a row.
func scanRow(r *engine.Row, scan scanner, more ...any) error {
	err := scan(append([]any{&r.State, &r.Owner, &r.ID, &r.Epoch, &r.Duration, &r.Until, &r.Nanos, &r.Changed, &r.Now}, more...)...)
	r.Version = r.Changed
	return err
}

// The method snapshot returns the record in a row that was read.
func (s *Store) snapshot(name string, r engine.Row) (lease.Snapshot, error) {
	snap, err := r.Snapshot(name, &s.clock)
	if err != nil {
		err = fmt.Errorf("mysqllease: row %q: %w; correct it, or delete it to free the lease", name, err)
	}
	return snap, err
}

// Swap replaces the record. If the record no longer has old.Version, or if the lease has ended since old.Now,
// Swap changes nothing and returns [lease.ErrConflict]. For a grant, the Epoch of the new record is above
// [Options.Floor].
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := engine.CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch > old.Record.Epoch { // a grant
		next.Epoch = max(next.Epoch, s.floor+1)
	}
	version, absent, err := engine.ParseVersion(old.Version)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("mysqllease: version %q is not of this store", old.Version)
	}
	earliest, end := engine.SwapTimes(old)
	signal, r := engine.NeedsSignal(old.Record.At(old.Now), next), engine.NewRow(next)
	args := []any{[]byte(name), absent, version, earliest, end, signal, r.State, []byte(r.Owner), r.ID, r.Epoch, r.Duration, r.Until, r.Nanos}
	var changed int64
	err = s.gate.Swap(name, old.Record, next, func(r engine.Request) error {
		return s.do(ctx, r, func(c *sql.Conn) error {
			err := c.QueryRowContext(ctx, "call lease_swap(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", args...).Scan(&changed)
			return conflictOr(err, changed)
		})
	})
	if err != nil {
		return lease.Snapshot{}, describeError("swap", name, err)
	}
	snap := written(next, changed)
	if signal {
		s.poller.Changed(name, snap.Version)
	}
	return snap, nil
}

// The function written returns the snapshot of a record that the server has written at the given time.
func written(r lease.Record, changed int64) lease.Snapshot {
	return lease.Snapshot{Record: r, Version: strconv.FormatInt(changed, 10), Now: time.UnixMicro(changed).UTC()}
}

// conflictOr returns the error of a write. It returns [lease.ErrConflict] if another transaction has prevented
// the write: it had inserted the same row (1062), had locked a row for too long (1205), or had changed a row
// since the statement read the row (1020). It also returns [lease.ErrConflict] if the server has answered 0
// instead of the time of a change, because the row had another version or the lease had ended.
func conflictOr(err error, changed int64) error {
	n := number(err)
	if err == nil && changed == 0 || n == 1062 || n == 1205 || n == 1020 {
		return lease.ErrConflict
	}
	return err
}
