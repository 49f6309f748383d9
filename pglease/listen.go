package pglease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Watch returns a channel that signals the changes that [lease.Watcher] describes. The channel also signals
// if somebody changes the row of the lease by hand. If a process commits a change but ends before it sends
// the notification, the signal comes within a second, because the Store reads the watched rows once a second.
// A Store reads at most 10,000 rows each second, so with 30,000 watched leases the signal comes within three
// seconds.
//
// All watches of a Store share one connection. The first call of Watch opens this connection, and the method
// Close of the Store closes it. If the connection is lost, the channels of all watches are closed, and the
// next call of Watch opens a new connection.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, describeError("watch", name, &connectError{err: ctx.Err()}) // another watch is connecting
	}
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, describeError("watch", name, lease.ErrClosed)
	}
	if l != nil {
		if signals, err := l.add(ctx, name); err == nil {
			return signals, nil
		} // else the connection is lost
	}
	conn, err := pgx.ConnectConfig(ctx, s.listening)
	if err != nil {
		return nil, describeError("watch", name, &connectError{err: err, before: l != nil})
	}
	if l, err = listen(ctx, conn, s.sql.settings, s.sql.sweep); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, describeError("watch", name, err)
	}
	signals, _ := l.add(ctx, name) // before start, so that a loss of the connection closes the channel
	l.start()
	s.mu.Lock()
	s.listener, closed = l, s.closed
	s.mu.Unlock()
	if closed {
		l.close()
		return nil, describeError("watch", name, lease.ErrClosed)
	}
	return signals, nil
}

// add adds a watch. Only changes that are later than the call of add need a signal, but the notification of
// an earlier change can cause one, too.
func (l *listener) add(ctx context.Context, name string) (<-chan struct{}, error) {
	l.mu.Lock()
	now := l.time.now()
	l.mu.Unlock()
	return l.watches.Add(ctx, name, now)
}

// Close ends all watches. Close waits until the notifications of all releases and breaks have been sent and
// all goroutines of the Store have ended. Close does not close the pool. Load and Swap still work after
// Close, but Watch returns an error that wraps [lease.ErrClosed]. If a request is running over a connection
// that the Store has opened itself because the pool could not connect, Close cuts that connection after a
// second.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
	s.close()
	s.spare.close()
}

var errLost = errors.New("the connection that listens was lost")

// A listener receives notifications over its own connection, and signals the watches.
type listener struct {
	conn   *pgx.Conn
	query  string // the SQL of a sweep
	cancel context.CancelFunc
	ended  chan struct{}

	watches engine.Watches[int64] // each with a server time in microseconds: only later changes need a signal
	queue   []string              // names for the next sweeps

	mu   sync.Mutex
	time serverTime
}

// listen returns a listener that uses conn. The caller must then call start. If the database or the
// connection cannot be used for leases, listen returns an error instead, and the caller must close conn.
func listen(ctx context.Context, conn *pgx.Conn, settingsQuery, sweepQuery string) (*listener, error) {
	if _, err := conn.Exec(ctx, "listen "+notifyChannel); err != nil {
		return nil, err
	}
	var d settings
	if err := conn.QueryRow(ctx, settingsQuery).Scan(&d); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	l := &listener{conn: conn, query: sweepQuery, ended: make(chan struct{})}
	return l, l.sweep(ctx) // a sweep of no names, which sets the time
}

func (l *listener) start() {
	running, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() {
		defer close(l.ended)
		defer l.watches.Close(errLost)
		defer l.conn.Close(running) // does not block, because running is canceled by now
		defer cancel()
		l.receive(running)
	}()
}

// Until the connection is lost, the method receive forwards notifications to the watches. Once a second, the
// method also looks for changes whose notification did not arrive.
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

// The method wait waits for one notification, and gives up at the given time. The result is true if the
// connection still works.
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

func (l *listener) signal(name string, micros int64) {
	l.watches.Update(name, func(after *int64) bool {
		*after = max(*after, micros)
		return true
	})
}
