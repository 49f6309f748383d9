package redislease

import (
	"context"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that signals changes of the lease, as [lease.Watcher] describes. The script that
// changes a lease also publishes the signal, so no signal is lost if the process that changes the lease
// crashes. A change by hand, such as DEL, sends no signal, so PUBLISH the name of the lease on the channel of
// its bucket.
//
// All watches of a Store share one connection. The first call of Watch opens this connection, and
// [Store.Close] closes it. If the connection is lost, the channels of all watches are closed, and the next
// call of Watch opens a new connection. A connection that dies silently is closed within 6 s.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	signals, err := s.watch(ctx, name)
	if err != nil {
		return nil, s.describeError("watch", s.Key(name), err)
	}
	return signals, nil
}

func (s *Store) watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, lease.ErrClosed
	}
	channel := s.channel(bucket(name))
	if l != nil {
		if signals, err := l.watch(ctx, name, channel); err == nil || ctx.Err() != nil {
			return signals, err
		} // else the connection is lost
	}
	server, err := s.servers.serverFor(ctx, s.Key(name))
	if err != nil {
		return nil, err
	}
	l = listen(server, &s.tasks, s.findPrimary)
	s.mu.Lock()
	if closed = s.closed; !closed {
		s.listener = l
	}
	s.mu.Unlock()
	if closed {
		l.lose(lease.ErrClosed)
		return nil, lease.ErrClosed
	}
	return l.watch(ctx, name, channel)
}
