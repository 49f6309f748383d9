package pglease

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that gets the signals of [lease.Watcher], for changes by the library and
// by hand. A signal comes as soon as the change is committed.
//
// If the process that made the change ended before it could notify, or if the row was changed past
// the view, the signal comes within a second, and a second later for each further 10,000 names that
// are watched through the Store. That is how often the Store reads the watched rows itself.
//
// All watches of a Store share one connection. The first Watch makes it, and Close ends it. When it
// is lost, all watches are lost, and the next Watch makes another.
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

// Close waits until all releases and breaks have been notified. Then it ends the listening
// connection and with it all watches, and waits until nothing of the Store runs any more. The Store
// can still load and swap. Close does not close the pool.
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

// A listener is a connection that listens, and the watches that it signals.
type listener struct {
	conn   *pgx.Conn
	query  string // of a sweep
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	watched map[string]*watched // by name; nil: the connection is lost
	queue   []string            // what the next sweeps look at
	time    serverTime
}

// watched is a name that is watched.
type watched struct {
	signals map[chan struct{}]struct{}
	after   int64 // the time of the server in microseconds: changes until then need no signal any more
}

// listen makes a listener of a connection.
func listen(ctx context.Context, conn *pgx.Conn, query string) (*listener, error) {
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
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
		defer conn.Close(running) // which is done, or the connection is: it does not wait
		defer cancel()
		l.run(running)
	}()
	return l, nil
}

// run signals what is notified and what sweeps find, until the connection is lost.
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

// wait waits for one notification until due. It reports whether the connection is still there.
func (l *listener) wait(ctx context.Context, due time.Time) bool {
	bounded, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	n, err := l.conn.WaitForNotification(bounded)
	if err != nil {
		return ctx.Err() == nil && bounded.Err() != nil && !l.conn.IsClosed()
	}
	micros, name := parsePayload(n.Payload)
	l.signal(name, micros)
	return true
}

func (l *listener) close() {
	l.cancel()
	<-l.ended
}

// add adds a watch, unless the listener is lost.
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

// remove closes a watch, unless it is closed already.
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

// signal signals every watch of the name for a change that was made at the time given.
func (l *listener) signal(name string, micros int64) {
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

// lose closes all watches.
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
