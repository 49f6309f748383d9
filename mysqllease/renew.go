package mysqllease

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A renewal is a request to renew one lease. The server carries out the request only if the row contains the
// record of the renewal. The end and the version of the row may differ from the record, because the answer to
// an earlier renewal may have been lost.
type renewal struct {
	name string
	lease.Record
}

// The method renew replaces old.Record with the record next. The two records differ only in their ends, and
// the server computes the new end from its own clock. The method returns [lease.ErrConflict] if the row
// differs from old.Record in more than its end and its version, if another transaction has locked the row, if
// the lease has ended, or if the server would have to round a time.
func (s *Store) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if engine.NewRow(old.Record).Nanos != 0 || next.Duration%time.Microsecond != 0 {
		return lease.Snapshot{}, lease.ErrConflict
	}
	var changed int64
	err := s.gate.Swap(name, old.Record, next, func(engine.Request) (err error) {
		changed, err = s.renewals.Do(ctx, name, renewal{name, next})
		return conflictOr(err, changed)
	})
	if err != nil {
		return lease.Snapshot{}, describeError("renew", name, err)
	}
	next.Until = time.UnixMicro(changed).UTC().Add(next.Duration)
	return written(next, changed), nil
}

// renewMany sends several renewals in one statement. The gate has already admitted these renewals. renewMany
// returns the time of each renewal, or 0 for a lease that was not renewed.
func (s *Store) renewMany(ctx context.Context, pass engine.Pass, all []renewal) ([]int64, error) {
	wanted := make([][6]any, len(all))
	for i, r := range all {
		wanted[i] = [6]any{i, hex.EncodeToString([]byte(r.name)), hex.EncodeToString([]byte(r.Owner)), r.ID.String(), r.Epoch, int64(r.Duration)}
	}
	text, _ := json.Marshal(wanted) // cannot fail for strings and numbers
	var answer string
	answered := false
	defer func() { pass.Leave(answered) }() // also if the driver panics
	err := s.send(ctx, func(c *sql.Conn) error {
		return c.QueryRowContext(ctx, "call lease_renew(?)", string(text)).Scan(&answer)
	})
	answered = ctx.Err() == nil && !errors.Is(err, errNoConnection)
	if err != nil {
		return nil, err
	}
	var renewed [][2]int64 // the index of a renewal, and its time
	if err := json.Unmarshal([]byte(answer), &renewed); err != nil {
		return nil, fmt.Errorf("lease_renew answers %.20q: %w; call mysqllease.Migrate", answer, err)
	}
	times := make([]int64, len(all))
	for _, r := range renewed {
		times[r[0]] = r[1]
	}
	return times, nil
}
