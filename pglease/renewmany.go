package pglease

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fencedlease/lease/engine"
)

// renewManySQL renews one or many leases in one statement. The statement reads the time once, after it has
// locked all rows. The statement skips a row that another transaction has locked, and the Store then renews
// that lease with [Store.Load] and [Store.Swap]. The statement sets the versions itself, so that no trigger
// runs.
//
// If the answer to an earlier renewal was lost, the row differs from the remembered record, but only in its
// end and its version. The statement renews such a row, too. While the server is slow, many renewals time out
// and are repeated. If each of them needed a Load and a Swap of its own, the server would stay slow.
//
// The planner does not know how many leases the statement renews, and could choose a plan that reads the
// whole table. The statement is written so that every possible plan looks up one row at a time. The statement
// finds and locks a row through the index, and updates the row through its ctid, which does not change while
// the row is locked.
const renewManySQL = `
with wanted as (
	select * from json_to_recordset($1::json) w(i integer, name text, id uuid, epoch bigint, owner text, duration text, micros bigint)
), locked as materialized (
	select w.i, l.place, w.micros from wanted w cross join lateral (
		select l.ctid as place from {row} l
		where l.name = w.name and l.state = 'leased' and l.id = w.id and l.epoch = w.epoch
			and l.owner = w.owner and l.duration = w.duration and l.nanos = 0
		for update skip locked
	) l
), at as materialized (
	select clock_timestamp() as now from (select count(*) from locked) all_locked
), renewed as (
	update {row} l set
		until = greatest(at.now, l.changed) + locked.micros * interval '1 microsecond',
		changed = greatest(at.now, l.changed),
		version = l.version + 1
	from locked, at
	where l.ctid = any (array(select place from locked)) and l.ctid = locked.place and greatest(at.now, l.changed) < l.until
	returning locked.i, l.version, l.changed
)
select coalesce(json_agg(json_build_array(i, version, (extract(epoch from changed) * 1000000)::bigint)), '[]')::text from renewed`

const (
	defaultRenewals = 4   // statements that may run at a time without being full, if the pool has no limit
	mostRenewals    = 500 // leases in one statement
)

// A renewal describes one lease that the server is to renew. The server renews the lease only if the row
// still has the ID, the epoch, the owner and the duration of the renewal.
type renewal struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Epoch    uint64 `json:"epoch"`
	Owner    string `json:"owner"`
	Duration string `json:"duration"`
	Micros   int64  `json:"micros"` // the duration in microseconds
}

// The type renewed is the result of a renewal. It contains the new version of the lease and the server time
// of that version. The zero value means that the lease was not renewed.
type renewed struct {
	version int64
	at      time.Time
}

// renewMany sends several renewals in one statement. The parameter pass is the permission of the store's
// [engine.Gate]. A lease is not renewed if it has ended, or if its row has changed or is locked.
func (s *rows) renewMany(ctx context.Context, pass engine.Pass, all []renewal) ([]renewed, error) {
	type numbered struct {
		I int `json:"i"`
		renewal
	}
	wanted := make([]numbered, len(all))
	for i, r := range all {
		wanted[i] = numbered{i, r}
	}
	var triples [][3]int64          // the index of a renewal, the version, and the time in microseconds
	text, _ := json.Marshal(wanted) // cannot fail for strings and numbers
	if err := s.send(ctx, pass, statement{sql: s.sql.renewMany, args: []any{string(text)}, answer: &triples}); err != nil {
		return nil, err
	}
	results := make([]renewed, len(all))
	for _, t := range triples {
		results[t[0]] = renewed{t[1], time.UnixMicro(t[2])}
	}
	return results, nil
}
