package pglease

import (
	"cmp"
	"context"
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Schema is the SQL that makes the tables and triggers. It is the text of the file schema.sql.
//
//go:embed schema.sql
var Schema string

// Options are the settings of a [Store] or an [SQLStore]. If the *Options is nil or a field is
// zero, the default applies.
type Options struct {
	// Schema is the PostgreSQL schema of the tables. By default, the server finds the tables
	// through its search path.
	Schema string

	// Limits bounds the durations that an authority over the store grants. Default: no limits.
	Limits lease.Limits

	// Names is the number of names for which the store remembers the record that it committed last.
	// Each name takes about 300 bytes. If a name was forgotten, the next request for it may need
	// one more exchange. Default: 65,536.
	Names int

	// Listen configures the connection on which a [Store] receives notifications. Set it if the
	// pool connects through a pooler, because a pooler does not forward notifications. Default: the
	// configuration of the pool.
	Listen *pgx.ConnConfig
}

// A row is the result of a query that returns one row.
type row interface{ Scan(...any) error }

// A database runs statements that return one row.
type database interface {
	// ask runs a statement and scans its row into dest. It returns when ctx is done. ask calls
	// leave when the connection is free, which may be after ask has returned. If ask returns an
	// error, it may still write to dest later.
	ask(ctx context.Context, leave func(), sql string, args, dest []any) error

	// again reports whether to try a failed statement on another connection. again is called only
	// for statements that may be repeated. n is the number of failed attempts so far.
	again(n int, err error) bool
}

// rows implements [lease.Store] over a database.
type rows struct {
	db       database
	gate     *gate
	limits   lease.Limits
	memory   *memory
	notifier notifier
	renewals renewals
	tasks    tasks
	sql      struct{ load, put, putNew, renew, renewMany, sweep, list string }
}

// ask runs one statement as soon as the gate lets the request through.
func (s *rows) ask(ctx context.Context, sql string, args, dest []any) error {
	if err := s.gate.enter(ctx, isUrgent(ctx)); err != nil {
		return err
	}
	return s.db.ask(ctx, s.gate.leave, sql, args, dest)
}

// askAgain is like ask, for a statement that may be repeated. It retries the statement if a
// connection broke.
func (s *rows) askAgain(ctx context.Context, sql string, args, dest []any) error {
	for n := 1; ; n++ {
		err := s.ask(ctx, sql, args, dest)
		if err == nil || ctx.Err() != nil || !s.db.again(n, err) {
			return err
		}
	}
}

func (s *rows) init(o *Options) error {
	if o == nil {
		o = new(Options)
	}
	if strings.IndexByte(o.Schema, 0) >= 0 {
		return &lease.FieldError{Field: "Options.Schema", Value: strconv.Quote(o.Schema), Bound: "must not have a NUL", Code: lease.ErrOption}
	}
	if err := o.Limits.Validate(); err != nil {
		return err
	}
	if o.Names < 0 {
		return &lease.FieldError{Field: "Options.Names", Value: strconv.Itoa(o.Names), Bound: "must not be negative", Code: lease.ErrOption}
	}
	s.limits, s.memory = o.Limits, newMemory(cmp.Or(o.Names, defaultNames))
	s.notifier.tasks, s.renewals.tasks = &s.tasks, &s.tasks
	s.renewals.one, s.renewals.many, s.renewals.most = s.renewOne, s.renewMany, defaultRenewals
	if s.gate != nil {
		s.renewals.size, s.renewals.most = s.gate.size, max(1, s.gate.spare)
	}
	s.notifier.send = func(ctx context.Context, payloads string) error {
		var n int
		return s.askAgain(urgently(ctx), notify, []any{payloads}, []any{&n})
	}
	in := ""
	if o.Schema != "" {
		in = `"` + strings.ReplaceAll(o.Schema, `"`, `""`) + `".`
	}
	name := strings.NewReplacer("{row}", in+"lease_row", "{floor}", in+"lease_floor")
	s.sql.load, s.sql.put, s.sql.putNew, s.sql.list = name.Replace(load), name.Replace(put), name.Replace(putNew), name.Replace(listRows)
	s.sql.renew, s.sql.renewMany, s.sql.sweep = name.Replace(renew), name.Replace(renewMany), name.Replace(sweep)
	return nil
}

// close blocks until no background request is under way.
func (s *rows) close() { s.tasks.wait() }

// load is the SQL that reads a row and the time. If the row has reached its end, load reads it
// again under a lock. Without the lock, a swap could be decided before the end of a lease and
// committed after the end. Such a swap would change a lease that another load has already reported
// as expired. A standby refuses every load, because a server in recovery cannot lock rows.
const load = `
with seen as materialized (
	select l.*, clock_timestamp() as now from {row} l where l.name = $1
), over as materialized (
	select l.*, clock_timestamp() as now
	from {row} l join seen on seen.until <= greatest(seen.now, seen.changed)
	where l.name = $1 for share of l
), row as (
	select * from over union all select * from seen where not exists (select from over)
)
select coalesce(r.state, ''), coalesce(r.epoch, f.epoch), coalesce(r.id::text, ''), coalesce(r.owner, ''),
	coalesce(r.duration, ''), r.until, coalesce(r.nanos, 0),
	coalesce(r.version, f.version), coalesce(greatest(r.now, r.changed), clock_timestamp()),
	f.schema, getdatabaseencoding()::text, pg_client_encoding()::text
from {floor} f left join row r on true`

// absent is the prefix of the version of a name without a row.
const absent = "absent-"

// Limits returns the limits that the store was made with.
func (s *rows) Limits() lease.Limits { return s.limits }

// Load returns the record under name and the time of the server.
func (s *rows) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	var c columns
	var d settings
	var version int64
	var now time.Time
	dest := append(c.pointers(), &version, &now, &d.schema, &d.database, &d.client)
	if err := s.askAgain(ctx, s.sql.load, []any{name}, dest); err != nil {
		return lease.Snapshot{}, explain("load", name, err)
	}
	if err := d.check(); err != nil {
		return lease.Snapshot{}, explain("load", name, err)
	}
	snap := lease.Snapshot{Version: strconv.FormatInt(version, 10), Now: now.UTC()}
	if c.state == "" {
		snap.Version, snap.Record.Epoch = absent+snap.Version, uint64(c.epoch)
		return snap, nil
	}
	var err error
	if snap.Record, err = c.record(); err != nil {
		return lease.Snapshot{}, unreadable(name, err)
	}
	return snap, nil
}
