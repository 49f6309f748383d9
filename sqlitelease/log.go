package sqlitelease

import (
	"context"
	"fmt"
)

// SQLite appends each commit to a log, the file "-wal". When all commits are in the database, SQLite
// overwrites the log from its beginning. While a program reads the database in a long transaction, SQLite
// cannot overwrite the log, so the log grows until this transaction ends.

// Before SQLite overwrites a log of more than logKept bytes, SQLite truncates the log to this size.
const logKept = 4 << 20

// logLimits has two limits for the size of the log, in bytes.
type logLimits struct {
	grants int64 // if the log is longer, no lease is granted
	writes int64 // if the log is longer, nothing is written, so that held leases expire
}

var defaultLogLimits = logLimits{grants: 64 << 20, writes: 256 << 20}

// check returns an error if the log is too long for another write.
func (l logLimits) check(size int64, grant bool) error {
	limit, what := l.writes, "write"
	if grant {
		limit, what = l.grants, "grant"
	}
	if size <= limit {
		return nil
	}
	return fmt.Errorf("no %s, because the file -wal has grown to %d MiB, above the limit of %d MiB: another program has a transaction open since before that; end it", what, size>>20, limit>>20)
}

// If the log exceeds the limit for grants, shortenLog moves the log into the database. If a program still
// reads the log, shortenLog does nothing, and the next grant is refused with the reason. The caller has the
// lock of the file, and no transaction.
func (s *Store) shortenLog(ctx context.Context) {
	if s.files.logSize() > s.logs.grants {
		_, _ = s.conn.ExecContext(ctx, "pragma wal_checkpoint(truncate)")
	}
}
