package pglease

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that signals changes of the lease, as [lease.Watcher] describes. The
// channel receives a signal for each change by this library and for each change by hand. The signal
// comes as soon as the change is committed.
//
// A process may end after it has committed a change and before it has sent the notification. To
// find changes without a notification, the Store reads up to 10,000 of the watched rows each
// second. The signal of such a change comes within a second. If more than 10,000 names are watched
// through the Store, each further 10,000 names can delay the signal of such a change by another
// second. A direct write to lease_row, the table behind the view, may cause no signal at all.
//
// All watches of a Store share one connection. The first call of Watch opens the connection, and
// Close closes it. If the connection is lost, all watches are lost, and the next call of Watch
// opens a new connection.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, explain("watch", name, ctx.Err())
	}
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, explain("watch", name, lease.ErrClosed)
	}
	signals := make(chan struct{}, 1)
	if l == nil || !l.add(name, signals) {
		conn, err := pgx.ConnectConfig(ctx, s.listening)
		if err != nil {
			return nil, explain("watch", name, &connectError{err})
		}
		if l, err = listen(ctx, conn, s.sql.sweep); err != nil {
			conn.Close(context.WithoutCancel(ctx))
			return nil, explain("watch", name, err)
		}
		l.add(name, signals)
		s.mu.Lock()
		s.listener, closed = l, s.closed
		s.mu.Unlock()
		if closed {
			l.close()
			return nil, explain("watch", name, lease.ErrClosed)
		}
	}
	context.AfterFunc(ctx, func() { l.remove(name, signals) })
	return signals, nil
}

// Close ends all watches and closes their connection. Close blocks until the notifications of all
// releases and breaks have been sent, and until no goroutine of the Store is running. Load and Swap
// still work after Close. Close does not close the pool.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
	s.close()
}

// A listener receives notifications over a connection of its own, and signals the watches.
type listener struct {
	conn   *pgx.Conn
	query  string // the SQL of a sweep
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	watched map[string]*watched // by name; nil if the connection is lost
	queue   []string            // names for the next sweeps
	time    serverTime
}

// watched holds the watches of one name.
type watched struct {
	signals map[chan struct{}]struct{}
	after   int64 // server time in microseconds; changes up to this time need no signal
}

// listen starts a listener that uses conn.
func listen(ctx context.Context, conn *pgx.Conn, query string) (*listener, error) {
	if _, err := conn.Exec(ctx, "listen "+notifyChannel); err != nil {
		return nil, err
	}
	var micros int64
	sent := time.Now()
	if err := conn.QueryRow(ctx, "select (extract(epoch from clock_timestamp()) * 1000000)::bigint").Scan(&micros); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	l := &listener{conn: conn, query: query, cancel: cancel, ended: make(chan struct{}), watched: map[string]*watched{}}
	l.setTime(micros, sent)
	go func() {
		defer close(l.ended)
		defer l.lose()
		defer conn.Close(running) // does not block, because running is canceled by now
		defer cancel()
		l.run(running)
	}()
	return l, nil
}

// run forwards notifications to the watches until the connection is lost. Once a second, it looks
// for changes without a notification.
func (l *listener) run(ctx context.Context) {
	for {
		due := time.Now().Add(sweepEvery)
		for time.Now().Before(due) {
			if !l.wait(ctx, due) {
				return
			}
		}
		if !l.sweep(ctx) {
			return
		}
	}
}

// wait waits for one notification, until due. It reports whether the connection still works.
func (l *listener) wait(ctx context.Context, due time.Time) bool {
	bounded, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	n, err := l.conn.WaitForNotification(bounded)
	if err != nil {
		return ctx.Err() == nil && bounded.Err() != nil && !l.conn.IsClosed()
	}
	micros, name := parsePayload(n.Payload)
	l.signalWatches(name, micros)
	return true
}

func (l *listener) close() {
	l.cancel()
	<-l.ended
}

// add adds a watch. It returns false if the connection is lost.
func (l *listener) add(name string, signals chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		return false
	}
	w := l.watched[name]
	if w == nil {
		w = &watched{signals: map[chan struct{}]struct{}{}, after: l.time.now()}
		l.watched[name] = w
	}
	w.signals[signals] = struct{}{}
	return true
}

// remove closes the channel of a watch if it is still open.
func (l *listener) remove(name string, signals chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.watched[name]
	if w == nil {
		return
	}
	if _, ok := w.signals[signals]; ok {
		close(signals)
		delete(w.signals, signals)
		if len(w.signals) == 0 {
			delete(l.watched, name)
		}
	}
}

// signalWatches signals every watch of a name. The change happened at the server time micros, which
// is in microseconds.
func (l *listener) signalWatches(name string, micros int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.watched[name]
	if w == nil {
		return
	}
	w.after = max(w.after, micros)
	for signals := range w.signals {
		select {
		case signals <- struct{}{}:
		default:
		}
	}
}

// lose closes the channels of all watches.
func (l *listener) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watched {
		for signals := range w.signals {
			close(signals)
		}
	}
	l.watched = nil
}
