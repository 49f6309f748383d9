package pglease

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store] or an [SQLStore]. A nil *Options or a zero field means the default.
type Options struct {
	// Schema is the PostgreSQL schema of the tables. Default: the server finds them through its search_path.
	Schema string

	// Limits restricts the durations that an authority over the store grants. Default: no limits.
	Limits lease.Limits

	// Names is the maximum number of leases for which the store remembers the last record that it wrote. Each
	// record takes about 300 bytes. A request for any other lease can take one more exchange with the server.
	// Default: 1,048,576.
	Names int

	// Floor is a lower bound of the tokens: every token that the store grants from now on is newer, even for
	// a lease that has a record already. When leases move here from another store, set Floor to the newest
	// token that any resource has seen. All stores over the same tables must have the same Floor. Default:
	// none.
	Floor lease.Token

	// Logger receives a warning if the server's clock is behind the records, at most once a minute. Default:
	// slog.Default().
	Logger *slog.Logger

	// Listen configures the connection on which a [Store] receives notifications. Set Listen if the pool
	// connects through a pooler, because a pooler does not forward notifications. Default: the configuration
	// of the pool.
	Listen *pgx.ConnConfig
}

// rows implements [lease.Store] over a database.
type rows struct {
	db        database
	connected atomic.Bool  // whether a request ever got a connection
	size      int          // connections of the pool; 0 means no limit
	gate      *engine.Gate // nil if size is 0
	limits    lease.Limits
	floor     uint64 // the epoch of Options.Floor
	clock     engine.LateClock
	memory    *engine.Memory
	authority lease.Authority
	renewals  engine.Batcher[renewal, renewed]
	tasks     tasks.Group // the notifications
	sql       struct{ load, put, putNew, renewMany, settings, sweep, list string }

	notifications engine.Batcher[string, struct{}]
}

func (s *rows) init(o *Options) error {
	if o == nil {
		o = new(Options)
	}
	if strings.IndexByte(o.Schema, 0) >= 0 {
		return engine.OptionError("Schema", strconv.Quote(o.Schema), "must not have a NUL")
	}
	lowest, err := engine.CheckOptions(o.Limits, o.Names, o.Floor, engine.HighestFloor)
	if err != nil {
		return err
	}
	names := cmp.Or(o.Names, engine.DefaultMemory)
	s.limits, s.floor, s.memory = o.Limits, lowest, engine.NewMemory(names)
	s.clock.Server, s.clock.Logger, s.clock.Most = "PostgreSQL", o.Logger, names
	s.renewals.Send, s.renewals.Few, s.renewals.Most = s.renewMany, defaultRenewals, mostRenewals
	s.renewals.Kind = engine.Request{Urgent: true, Renewals: 1}
	if s.size > 0 {
		s.gate = engine.NewGate(s.size)
		s.renewals.Gate, s.renewals.Few = s.gate, max(1, s.gate.Spare())
	}
	s.notifications.Send, s.notifications.Few, s.notifications.Most = s.notifyMany, 1, notifyMost
	s.notifications.Kind, s.notifications.Gate = engine.Request{Urgent: true}, s.gate
	in := ""
	if o.Schema != "" {
		in = quote(o.Schema) + "."
	}
	name := strings.NewReplacer("{row}", in+"lease_row", "{floor}", in+"lease_floor", "{schema}", schemaSQL, "{settings}", settingsSQL, "{json}", rowSQL)
	s.sql.load, s.sql.put, s.sql.putNew, s.sql.list = name.Replace(loadSQL), name.Replace(putSQL), name.Replace(putNewSQL), name.Replace(listSQL)
	s.sql.renewMany = name.Replace(renewManySQL)
	s.sql.settings, s.sql.sweep = name.Replace(connectedSQL), name.Replace(sweepSQL)
	return nil
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (s *rows) close() {
	_ = s.tasks.Close(context.Background())
	s.renewals.Close()
	s.notifications.Close()
}

// loadSQL reads a row and the time. If the lease has reached its end, loadSQL reads the row again under a
// lock. To get the lock, the server waits for a [Store.Swap] that has read the clock before the end of the
// lease, but is not yet committed. Without the lock, a [Store.Load] could report the lease as expired, and
// the Swap could then renew the lease. A standby refuses every Load, because a server in recovery cannot lock
// rows.
const loadSQL = `
with seen as materialized (
	select l.*, clock_timestamp() as now from {row} l where l.name = $1
), over as materialized (
	select l.*, clock_timestamp() as now
	from {row} l join seen on seen.until <= greatest(seen.now, seen.changed)
	where l.name = $1 for share of l
), row as (
	select * from over union all select * from seen where not exists (select from over)
)
select json_build_object({settings}, 'rows', json_build_array({json}))::text from {floor} f left join row r on true`

// Lease returns a Session that can hold the lease with the given name. A nil o means the defaults of package
// session. If name is malformed or an option is out of range, the error wraps a [*lease.FieldError].
func (s *rows) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.authority, name, o)
}

// Authority returns an authority that uses the store. The authority is also a [lease.Lister] and, with a
// [Store], a [lease.Watcher].
//
// To renew, change or release a lease, the authority starts from the last record that the store wrote, unlike
// lease.NewAuthority(s), which loads the record before every swap. If the last record is out of date, the
// authority loads the current record and decides again, so it never refuses a request because of an outdated
// record.
func (s *rows) Authority() lease.Authority { return s.authority }

// Limits returns the limits that the store was made with.
func (s *rows) Limits() lease.Limits { return s.limits }

// Load returns the record of the named lease, and the time of the server. If the clock of the server was set
// back, the time of the server can be before the end of a lease that has ended. If the Store has seen the
// same record for so long that the lease must have ended, Load therefore returns the end of the lease instead
// of the time of the server.
func (s *rows) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	loaded, err := s.readRows(ctx, s.sql.load, name)
	if err != nil {
		return lease.Snapshot{}, describeError("load", name, err)
	}
	return loaded[0].snapshot(name, &s.clock)
}
