package pglease

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that signals changes of the lease, as [lease.Watcher] describes, and changes of
// its row by hand. If a process ends after the commit of a change and before its notification, the signal
// comes within a second, because the Store reads up to 10,000 of the watched rows each second. It takes
// one second longer for every additional 10,000 names.
//
// All watches of a Store share one connection, which the first call of Watch opens and Close closes. If
// it is lost, the channels of all watches are closed, and the next call of Watch opens a new one.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, explain("watch", name, &connectError{err: ctx.Err()}) // another watch is connecting
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
			return nil, explain("watch", name, &connectError{err: err, before: l != nil})
		}
		if l, err = listen(ctx, conn, s.sql.settings, s.sql.sweep); err != nil {
			conn.Close(context.WithoutCancel(ctx))
			return nil, explain("watch", name, err)
		}
		l.add(name, signals) // before start, so that a loss of the connection closes the channel
		l.start()
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

// Close ends all watches, and blocks until the notifications of all releases and breaks have been sent
// and all goroutines of the Store have ended. It does not close the pool. Load and Swap still work after
// Close, but Watch returns an error that wraps [lease.ErrClosed].
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
	s.close()
	s.outside.close()
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

// listen returns a listener that uses conn, or an error if the database or the connection cannot be used
// for leases. The caller must call start.
func listen(ctx context.Context, conn *pgx.Conn, settingsQuery, sweepQuery string) (*listener, error) {
	if _, err := conn.Exec(ctx, "listen "+notifyChannel); err != nil {
		return nil, err
	}
	var d settings
	if err := conn.QueryRow(ctx, settingsQuery).Scan(&d.schema, &d.database, &d.client); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	l := &listener{conn: conn, query: sweepQuery, ended: make(chan struct{}), watched: map[string]*watched{}}
	return l, l.sweep(ctx) // a sweep of no names, which sets the time
}

func (l *listener) start() {
	running, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() {
		defer close(l.ended)
		defer l.lose()
		defer l.conn.Close(running) // does not block, because running is canceled by now
		defer cancel()
		l.receive(running)
	}()
}

// receive forwards notifications to the watches until the connection is lost. Once a second, it looks for
// changes whose notification is missing.
func (l *listener) receive(ctx context.Context) {
	for {
		due := time.Now().Add(sweepEvery)
		for time.Now().Before(due) {
			if !l.wait(ctx, due) {
				return
			}
		}
		if l.sweep(ctx) != nil {
			return
		}
	}
}

// wait waits for one notification, until due at the latest, and reports whether the connection still works.
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

// signalWatches signals every watch of a name after a change at the server time micros, in microseconds.
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
