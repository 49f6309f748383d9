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
	if err := ctx.Err(); err != nil {
		return nil, s.describeError("watch", s.Key(name), err)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, s.describeError("watch", s.Key(name), ctx.Err())
	}
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, s.describeError("watch", s.Key(name), lease.ErrClosed)
	}
	channel := s.channel(bucket(name))
	if l != nil {
		signals, err := l.watch(ctx, name, channel)
		if err == nil {
			return signals, nil
		}
		if ctx.Err() != nil {
			return nil, s.describeError("watch", s.Key(name), err)
		}
	}
	server, err := s.servers.serverFor(ctx, s.Key(name))
	if err != nil {
		return nil, s.describeError("watch", s.Key(name), err)
	}
	s.mu.Lock()
	closed = s.closed
	if !closed {
		l = listen(server, &s.tasks, s.findPrimary)
		s.listener = l
	}
	s.mu.Unlock()
	if closed {
		return nil, s.describeError("watch", s.Key(name), lease.ErrClosed)
	}
	signals, err := l.watch(ctx, name, channel)
	if err != nil {
		return nil, s.describeError("watch", s.Key(name), err)
	}
	return signals, nil
}
