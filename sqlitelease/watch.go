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

// Watch returns a channel that receives a value at each write of the record. If this Store writes the record,
// the value comes at once. If another process writes it, the value comes within about 100 ms, because the
// Store reads the number of the last commit ten times a second while there are watches. The channel is closed
// when ctx ends, when the Store is closed, or when the file was removed or damaged.
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

// rowVersion returns the version in the row of a name. If there is no row, rowVersion returns "". It also
// returns "" if this transaction has written the row: after a failed commit, another store can use the same
// version for another change, which must be signalled, too.
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

// poll reads the versions of watched names, unless nothing was committed since the last poll. It asks for
// these names only now, because s.polled must also be true of names that were added after the Poller began
// the poll.
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
