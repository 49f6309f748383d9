package sqlitelease

import (
	"context"
	"fmt"
)

// SQLite appends each commit to the log, the file "-wal". Once the database contains the whole log, SQLite
// overwrites the log from its beginning. It cannot do so while a program reads the database in a long
// transaction, so the log would grow until that transaction ends.

// logKept is the size in bytes to which SQLite shortens a longer log when it begins to overwrite it.
const logKept = 4 << 20

// logLimits bound the size of the log in bytes.
type logLimits struct {
	grants int64 // above it, no lease is granted
	writes int64 // above it, nothing is written, so that held leases expire
}

var defaultLogLimits = logLimits{grants: 64 << 20, writes: 256 << 20}

// check returns an error if the log is too long for one more write.
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

// shortenLog moves the log into the database if it has become so long that no lease may be granted any more. While a program still reads the
// log, this does nothing, and the next write is refused with the reason. The caller has the lock of the
// file, and no transaction.
func (s *Store) shortenLog(ctx context.Context) {
	if s.files.logSize() > s.logs.grants {
		_, _ = s.conn.ExecContext(ctx, "pragma wal_checkpoint(truncate)")
	}
}
