package mysqllease

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

const (
	pollMost   = 1000             // names in one statement
	pollWithin = 10 * time.Second // timeout of one poll
)

// Watch implements [lease.Watcher]. All watches of a Store together cost one query in each Options.PollInterval, or
// one for each 1,000 names. A signal is sent at most one such interval after the commit of the change, even if
// the process that made the change has crashed. While the server does not answer, signals are late, and none is lost.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	found, err := s.signalled(ctx, []string{name})
	if err != nil {
		return nil, s.explain("watch", name, err)
	}
	return s.watches.add(ctx, name, found[name])
}

// signalled returns the time of the last change of each lease that waiters may wait for. It leaves out a lease that
// has no row.
func (s *Store) signalled(ctx context.Context, names []string) (found map[string]int64, err error) {
	query := "select name, signalled from lease_row where name in (?" + strings.Repeat(", ?", len(names)-1) + ")"
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = []byte(name)
	}
	return found, s.read(ctx, func(ctx context.Context, c *sql.Conn) error {
		found = map[string]int64{}
		rows, err := c.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var at int64
			if err := rows.Scan(&name, &at); err != nil {
				return err
			}
			found[name] = at
		}
		return rows.Err()
	})
}

// watches sends signals to the watches of a store, which it polls while there are any.
type watches struct {
	store  *Store
	every  time.Duration
	ctx    context.Context // of the polls
	cancel context.CancelFunc
	polls  sync.WaitGroup

	mu      sync.Mutex
	all     map[*watch]struct{}
	polling bool
}

type watch struct {
	name    string
	seen    int64 // 0: the lease had no row
	signals chan struct{}
}

func (w *watches) start(s *Store, every time.Duration) {
	w.store, w.every, w.all = s, every, map[*watch]struct{}{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
}

func (w *watches) closed() bool { return w.ctx.Err() != nil }

// add adds a watch for changes of a lease after the one that was seen.
func (w *watches) add(ctx context.Context, name string, seen int64) (<-chan struct{}, error) {
	added := &watch{name, seen, make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed() {
		return nil, lease.ErrClosed
	}
	w.all[added] = struct{}{}
	context.AfterFunc(ctx, func() { w.remove(added) })
	if !w.polling {
		w.polling = true
		w.polls.Go(w.poll)
	}
	return added.signals, nil
}

func (w *watches) remove(old *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.all[old]; open {
		delete(w.all, old)
		close(old.signals)
	}
}

// stop closes all watches.
func (w *watches) stop() {
	w.cancel()
	w.polls.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for old := range w.all {
		delete(w.all, old)
		close(old.signals)
	}
}

// poll ends when there are no more watches.
func (w *watches) poll() {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
		names := w.names()
		if names == nil {
			return
		}
		for some := range slices.Chunk(names, pollMost) {
			ctx, cancel := context.WithTimeout(w.ctx, pollWithin)
			found, err := w.store.signalled(ctx, some)
			cancel()
			if err == nil { // after an error, the next poll finds the same changes
				w.signal(some, found)
			}
		}
	}
}

// names returns the names of all watches. If there are none, no poll goes on.
func (w *watches) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := map[string]struct{}{}
	for one := range w.all {
		names[one.name] = struct{}{}
	}
	if len(names) == 0 {
		w.polling = false
	}
	return slices.Sorted(maps.Keys(names))
}

// signal sends a signal to each watch of the names, which are sorted, whose lease has changed, or has lost or got its row.
func (w *watches) signal(names []string, found map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if _, polled := slices.BinarySearch(names, one.name); !polled || found[one.name] == one.seen {
			continue
		}
		one.seen = found[one.name]
		select {
		case one.signals <- struct{}{}:
		default:
		}
	}
}
