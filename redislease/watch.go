package redislease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that signals changes of the lease, as [lease.Watcher] describes. The
// script that changes a lease also publishes the signal. So no process can end between a change and
// its signal. A change by hand sends no signal. To send a signal by hand, publish the name of the
// lease on the channel of its bucket.
//
// All watches of a Store share one connection. The first call of Watch opens the connection, and
// [Store.Close] closes it. If the connection is lost, all watches are lost, and the next call of
// Watch opens a new connection. A connection that dies silently counts as lost within 6 s.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, s.explain("watch", s.Key(name), err)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, s.explain("watch", s.Key(name), ctx.Err())
	}
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, s.explain("watch", s.Key(name), lease.ErrClosed)
	}
	channel := s.channel(bucket(name))
	signals := make(chan struct{}, 1)
	if l != nil && l.add(name, signals) {
		err := l.subscribe(ctx, channel)
		if err == nil {
			context.AfterFunc(ctx, func() { l.remove(name, signals) })
			return signals, nil
		}
		l.remove(name, signals)
		if !errors.Is(err, errLost) {
			return nil, s.explain("watch", s.Key(name), err)
		}
	}
	server, err := s.servers.serverFor(ctx, s.Key(name))
	if err != nil {
		return nil, s.explain("watch", s.Key(name), err)
	}
	s.mu.Lock()
	closed = s.closed
	if !closed {
		l = listen(server, &s.tasks)
		s.listener = l
	}
	s.mu.Unlock()
	if closed {
		return nil, s.explain("watch", s.Key(name), lease.ErrClosed)
	}
	l.add(name, signals)
	if err := l.subscribe(ctx, channel); err != nil {
		l.remove(name, signals)
		return nil, s.explain("watch", s.Key(name), err)
	}
	context.AfterFunc(ctx, func() { l.remove(name, signals) })
	return signals, nil
}
