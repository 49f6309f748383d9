package pglease

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Schema is the SQL that makes the tables and triggers. It is the file schema.sql.
//
//go:embed schema.sql
var Schema string

// Options are the settings of a [Store] or an [SQLStore]. A nil *Options and zero fields have
// the defaults stated here.
type Options struct {
	// Schema in which the tables are. Default: wherever the search path finds them.
	Schema string

	// Limits are the durations that an authority over the store grants. Default: none.
	Limits lease.Limits

	// Names is for how many names the store remembers what its authorities committed last: some
	// 300 bytes each. What is forgotten costs a load. Default: 65,536.
	Names int

	// Listen is how a [Store] connects to listen, where that has to be past a pooler. Default:
	// as its pool does.
	Listen *pgx.ConnConfig
}

// A row is what a query returned.
type row interface{ Scan(...any) error }

// rows is a [lease.Store] over whatever can run a query.
type rows struct {
	query  func(ctx context.Context, sql string, args ...any) row
	limits lease.Limits
	memory *memory
	sql    struct{ load, put, putNew, renew string }

	// again reports after a failed load whether another connection may do better, the n-th time.
	again func(n int, err error) bool
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
	in := ""
	if o.Schema != "" {
		in = `"` + strings.ReplaceAll(o.Schema, `"`, `""`) + `".`
	}
	name := strings.NewReplacer("{row}", in+"lease_row", "{floor}", in+"lease_floor")
	s.sql.load, s.sql.put, s.sql.putNew, s.sql.renew = name.Replace(load), name.Replace(put), name.Replace(putNew), name.Replace(renew)
	return nil
}

// load reads a row and the time. Whether a row that has come to its until is still the
// current one is found out under a lock of it: otherwise a swap that was decided before the
// until, and commits after, would change what somebody has already seen to be over. A server
// in recovery refuses the lock, so that a standby answers nothing.
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
	coalesce(r.version, f.version), coalesce(greatest(r.now, r.changed), clock_timestamp())
from {floor} f left join row r on true`

// absent begins the version of a name without a row.
const absent = "absent-"

// Limits returns the limits the store was made with.
func (s *rows) Limits() lease.Limits { return s.limits }

// Load returns the record under name and the time of the server.
func (s *rows) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	var c columns
	var version int64
	var now time.Time
	for n := 1; ; n++ {
		err := s.query(ctx, s.sql.load, name).Scan(append(c.pointers(), &version, &now)...)
		if err == nil {
			break
		}
		if ctx.Err() != nil || s.again == nil || !s.again(n, err) {
			return lease.Snapshot{}, explain("load", name, err)
		}
	}
	snap := lease.Snapshot{Version: strconv.FormatInt(version, 10), Now: now.UTC()}
	if c.state == "" {
		snap.Version, snap.Record.Epoch = absent+snap.Version, uint64(c.epoch)
		return snap, nil
	}
	var err error
	if snap.Record, err = c.record(); err != nil {
		return lease.Snapshot{}, fmt.Errorf("pglease: row %q: %w; put it right, or delete it to free the lease", name, err)
	}
	return snap, nil
}
