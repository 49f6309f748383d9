package session

import (
	"context"

	"github.com/fencedlease/lease"
)

// attend watches the record of the incarnation that is held for as long as that lasts, if
// the Options say so. It must be called with mu held.
func (s *Session) attend() {
	if _, ok := s.authority.(lease.Watcher); !ok || !s.o.Watch {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.bind(cancel)
	id, incarnation := s.held.id, s.incarnation
	s.begin()
	go func() {
		defer s.finish()
		for ctx.Err() == nil {
			changed := s.watch(ctx, nil)
			for open := changed != nil; open; {
				s.look(id, incarnation) // first at what was there before the watch
				select {
				case _, open = <-changed:
				case <-ctx.Done():
					return
				}
			}
			_ = sleep(ctx, s.o.Clock, s.shorten(s.o.Interval, 0.5))
		}
	}()
}

// look reads the record, and makes a renewal due at once if it does not show the incarnation
// as leased: what that means is for the renewal's answer to say.
func (s *Session) look(id lease.ID, incarnation uint64) {
	res, _, now, _ := s.do(context.Background(), lease.Request{Action: lease.Read})
	r := res.Record
	if res.Now.IsZero() || r.State == lease.Leased && (r.ID == id || r.ID.IsZero()) {
		return // unknown, or in order as far as it is told
	}
	s.lock()
	defer s.unlock()
	if s.held != nil && s.incarnation == incarnation {
		s.urgent = s.renewing
		s.schedule(now, 0)
	}
}
