package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// pollInterval is the time between two looks at the file for the changes of other processes.
const pollInterval = 100 * time.Millisecond

type watches struct {
	mu      sync.Mutex
	names   map[string]*watched
	polling bool
	pokes   chan struct{} // a commit of this store; made with the first watch
}

type watched struct {
	version int64 // 0: no row
	chans   map[chan struct{}]struct{}
}

// Watch signals every write of the record. A change by this Store is signalled at once, and one by
// another within about 100 ms, also if that process is killed. While there are watches, the Store reads a
// counter in shared memory ten times a second. The channel is closed when ctx ends, when the Store is
// closed, or when the file cannot be read.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	err := s.do(ctx, func(t *tx) error {
		version, err := rowVersion(s.conn, name)
		if err != nil {
			t.failed = err
			return err
		}
		s.watches.add(s, name, version, c)
		context.AfterFunc(ctx, func() { s.watches.remove(name, c) })
		return nil
	})
	if err != nil {
		return nil, explain("watch "+strconv.Quote(name), err)
	}
	return c, nil
}

func rowVersion(conn *sql.Conn, name string) (version int64, err error) {
	err = conn.QueryRowContext(context.Background(), "select version from lease where name = ?", name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

func (w *watches) add(s *Store, name string, version int64, c chan struct{}) {
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
		w.polling = true
		s.tasks.Go(func() { s.poll(w.pokes) }) // add runs in a task, so Close waits for this one too
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

// poke makes the poll look at once.
func (w *watches) poke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.pokes <- struct{}{}: // blocks if there was no watch
	default:
	}
}

// poll signals changes until no watch is left. An error of the file closes all watches.
func (s *Store) poll(pokes <-chan struct{}) {
	w := &s.watches
	conn, err := s.db.Conn(context.Background())
	if err == nil {
		defer conn.Close()
	}
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for seen := int64(-1); ; {
		if err == nil {
			err = s.checkFile()
		}
		if err == nil {
			err = s.look(conn, &seen)
		}
		if isBusy(err) {
			err = nil
		}
		if err != nil {
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

// look signals the names whose version has changed. PRAGMA data_version changes if another connection has
// committed, and that of the worker is another one, too.
func (s *Store) look(conn *sql.Conn, seen *int64) error {
	var data int64
	if err := conn.QueryRowContext(context.Background(), "pragma data_version").Scan(&data); err != nil || data == *seen {
		return err
	}
	w := &s.watches
	w.mu.Lock()
	names := make([]string, 0, len(w.names))
	for name := range w.names {
		names = append(names, name)
	}
	w.mu.Unlock()
	for _, name := range names {
		version, err := rowVersion(conn, name)
		if err != nil {
			return err
		}
		w.signal(name, version)
	}
	*seen = data
	return nil
}

func (w *watches) signal(name string, version int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
