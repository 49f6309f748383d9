package redislease

import (
	"context"
	"errors"

	"github.com/fencedlease/lease"
)

// Watch returns a channel that is signalled as [lease.Watcher] says. The script that changes a lease
// signals it, so that no process can end between the two. A change by hand is not signalled, unless
// it publishes the name on the channel of its bucket.
//
// All watches of a Store share one connection of their own, which is made with the first and ended
// by Close. When it is lost, all watches are lost, and the next Watch makes another. A connection
// that dies silently is lost within 6 s.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
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
	server, err := s.servers.of(ctx, s.Key(name))
	if err != nil {
		return nil, s.explain("watch", s.Key(name), err)
	}
	l = listen(server)
	s.mu.Lock()
	closed = s.closed
	if !closed {
		s.listener = l
	}
	s.mu.Unlock()
	if closed {
		l.close()
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
