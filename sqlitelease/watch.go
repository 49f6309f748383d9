package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pollInterval is how long the Store waits before it reads the changes of other processes again.
const pollInterval = 100 * time.Millisecond

// Watch returns a channel that signals every write of the record, as [lease.Watcher] describes. If this Store
// writes the record, the signal comes at once. If another process writes the record, the signal comes within
// about 100 ms, even if that process is killed. While there are watches, the Store reads the number of the
// last commit ten times a second. The channel is closed when ctx ends, when the Store is closed, or when the
// Store finds that the file was removed, replaced or damaged.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	var signals <-chan struct{}
	err := s.do(ctx, engine.Request{}, func(t *tx) error {
		version, err := t.rowVersion(name)
		if err == nil {
			signals, err = s.watches.Add(ctx, name, version)
		}
		return err
	})
	if err != nil { // after an error, f may still write signals
		return nil, describeError("watch "+strconv.Quote(name), err)
	}
	return signals, nil
}

// rowVersion returns the version in the row of a name. If there is no row, rowVersion returns "". If this
// transaction has written the row, rowVersion also returns "", because the commit of the transaction can
// fail. Another store can then give the same version to another change. If rowVersion had returned this
// version, the watch would not signal the other change.
func (t *tx) rowVersion(name string) (version string, err error) {
	if slices.ContainsFunc(t.written, func(w written) bool { return w.name == name }) {
		return "", nil
	}
	err = t.s.conn.QueryRowContext(context.Background(), "select version from lease where name = ?", name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		t.failed = err
	}
	return version, err
}

// signalWritten signals the names that a transaction has written. If another store has committed since the
// last poll, signalWritten makes the next poll happen at once.
func (t *tx) signalWritten() {
	for _, row := range t.written {
		t.s.watches.Changed(row.name, strconv.FormatInt(row.version, 10))
	}
	if t.s.polled == t.began {
		t.s.polled = t.meta.version
		return
	}
	t.s.watches.Poke()
}

// The method poll reads the versions of watched names if there was a commit after the last poll. The method
// ignores the names that the Poller passes to it, because a watch can have been added since then. The method
// instead reads the names of all watches, because s.polled says which commits were seen for all of them.
func (s *Store) poll(ctx context.Context, _ []string, seen func(name, version string)) error {
	return describeError("watch", s.do(ctx, engine.Request{}, func(t *tx) error {
		if t.began == s.polled {
			return nil
		}
		for _, name := range s.watches.Names() {
			version, err := t.rowVersion(name)
			if err != nil {
				return err
			}
			seen(name, version)
		}
		s.polled = t.began
		return nil
	}))
}
