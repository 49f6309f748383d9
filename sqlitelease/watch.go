package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pollInterval is the time between two looks at the file for the changes of other processes.
const pollInterval = 100 * time.Millisecond

type watches struct {
	mu      sync.Mutex
	names   map[string]*watched
	seen    int64 // the version in lease_meta up to which all changes were signalled
	polling bool
	pokes   chan struct{} // another store has committed; made with the first watch
}

type watched struct {
	version int64 // 0: no row
	chans   map[chan struct{}]struct{}
}

// Watch signals every write of the record. A change by this Store is signalled at once, and one by
// another within about 100 ms, also if that process is killed. While there are watches, the Store reads the
// number of the last commit ten times a second. The channel is closed when ctx ends, when the Store is
// closed, or when the file cannot be read.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	err := s.do(ctx, engine.Request{}, func(t *tx) error {
		version, err := t.rowVersion(name)
		if err != nil {
			return err
		}
		s.watches.add(t, name, version, c)
		context.AfterFunc(ctx, func() { s.watches.remove(name, c) })
		return nil
	})
	if err != nil {
		return nil, explain("watch "+strconv.Quote(name), err)
	}
	return c, nil
}

// rowVersion returns the version in the row of a name, or 0 if it has none.
func (t *tx) rowVersion(name string) (version int64, err error) {
	err = t.s.conn.QueryRowContext(context.Background(), "select version from lease where name = ?", name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		t.failed = err
	}
	return version, err
}

func (w *watches) add(t *tx, name string, version int64, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names, w.pokes = make(map[string]*watched), make(chan struct{}, 1)
	}
	if w.names[name] == nil {
		w.names[name] = &watched{version: version, chans: make(map[chan struct{}]struct{})}
	}
	w.names[name].chans[c] = struct{}{}
	if !w.polling {
		w.polling, w.seen = true, t.meta.version
		t.s.tasks.Go(func() { t.s.poll(w.pokes) }) // add runs in a task, so Close waits for this one too
	}
}

func (w *watches) remove(name string, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.names[name]; x != nil {
		if _, open := x.chans[c]; open {
			delete(x.chans, c)
			close(c)
		}
		if len(x.chans) == 0 {
			delete(w.names, name)
		}
	}
}

// stop closes all channels. The next watch begins a new poll.
func (w *watches) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = false
	for name, x := range w.names {
		for c := range x.chans {
			close(c)
		}
		delete(w.names, name)
	}
}

// committed signals the names that a transaction has written. If another store has committed before it,
// the poll looks at once.
func (w *watches) committed(t *tx) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.names) == 0 {
		return
	}
	for _, row := range t.written {
		w.signal(row.name, row.version)
	}
	if w.seen == t.began {
		w.seen = t.meta.version
		return
	}
	select {
	case w.pokes <- struct{}{}:
	default:
	}
}

// poll signals the changes of other stores until no watch is left. An error of the file closes all
// watches.
func (s *Store) poll(pokes <-chan struct{}) {
	w := &s.watches
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for {
		if err := s.do(context.Background(), engine.Request{}, s.watches.look); err != nil && !isBusy(err) {
			w.stop()
			return
		}
		w.mu.Lock()
		if len(w.names) == 0 {
			w.polling = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		select {
		case <-s.ended:
			return // Close closes the channels
		case <-pokes:
		case <-ticks.C:
		}
	}
}

// look signals the names whose version has changed since the last look.
func (w *watches) look(t *tx) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.began == w.seen {
		return nil
	}
	for name := range w.names {
		version, err := t.rowVersion(name)
		if err != nil {
			return err
		}
		w.signal(name, version)
	}
	w.seen = t.began
	return nil
}

// signal signals a version of a record that was not signalled yet. The caller has the lock.
func (w *watches) signal(name string, version int64) {
	x := w.names[name]
	if x == nil || x.version == version {
		return
	}
	x.version = version
	for c := range x.chans {
		select {
		case c <- struct{}{}:
		default: // the previous signal was not received yet
		}
	}
}
