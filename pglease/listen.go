package pglease

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/fencedlease/lease"
)

// channel is the one that the triggers of the schema notify, with the name of the lease.
const channel = "lease"

// Watch returns a channel that is signalled when the row of that name changes, whoever
// changes it, but for a renewal through [Store.Authority], and an until that was set past the
// view. All watches of a Store share one connection of their own, which is made with the first and
// ended by Close; when it is lost, so are they, and the next Watch makes another.
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
		if err == nil {
			_, err = conn.Exec(ctx, "listen "+channel)
			if err != nil {
				conn.Close(context.WithoutCancel(ctx))
			}
		}
		if err != nil {
			return nil, explain("watch", name, err)
		}
		l = listen(conn)
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

// Close ends the listening connection and with it all watches, and waits until nothing of the
// Store runs any more. The Store can still load and swap; the pool belongs to whoever made it.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// A listener is a connection that listens, and who wants to know.
type listener struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	watches map[string]map[chan struct{}]struct{} // by name; nil: it is lost
}

func listen(conn *pgx.Conn) *listener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{cancel: cancel, ended: make(chan struct{}), watches: map[string]map[chan struct{}]struct{}{}}
	go func() {
		defer close(l.ended)
		defer l.lose()
		defer conn.Close(ctx) // which is done, or the connection is: it does not wait
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				cancel()
				return
			}
			l.signal(n.Payload)
		}
	}()
	return l
}

func (l *listener) close() {
	l.cancel()
	<-l.ended
}

// add adds a watch, unless the listener is lost.
func (l *listener) add(name string, signals chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches == nil {
		return false
	}
	if l.watches[name] == nil {
		l.watches[name] = map[chan struct{}]struct{}{}
	}
	l.watches[name][signals] = struct{}{}
	return true
}

// remove closes a watch, unless it is closed already.
func (l *listener) remove(name string, signals chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.watches[name][signals]; ok {
		close(signals)
		delete(l.watches[name], signals)
		if len(l.watches[name]) == 0 {
			delete(l.watches, name)
		}
	}
}

func (l *listener) signal(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for signals := range l.watches[name] {
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
	for _, watches := range l.watches {
		for signals := range watches {
			close(signals)
		}
	}
	l.watches = nil
}
