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
			s.follow(ctx, id, incarnation)
			if ctx.Err() == nil {
				_ = sleep(ctx, s.o.Clock, s.jitter(s.o.RenewInterval))
			}
		}
	}()
}

// follow looks at the record at once and at every signal of a watch, for as long as that
// lasts, or until ctx ends. After a look that showed nothing new it pauses, as Wait does.
func (s *Session) follow(ctx context.Context, id lease.ID, incarnation uint64) {
	changed, stop := s.watch(ctx, nil)
	defer stop()
	var last lease.Record
	for open := changed != nil; open && ctx.Err() == nil; {
		seen, known := s.look(id, incarnation) // first at what was there before the watch
		if !known || seen == last {
			_ = sleep(ctx, s.o.Clock, s.jitter(s.o.RenewInterval/10))
		} else {
			last = seen
		}
		select {
		case _, open = <-changed:
		case <-ctx.Done():
		}
	}
}

// look reads the record, and makes a renewal due at once if it does not show the incarnation
// as leased: what that means is for the renewal's answer to say. It returns what it has seen, if
// it is told.
func (s *Session) look(id lease.ID, incarnation uint64) (r lease.Record, known bool) {
	res, _, now, _ := s.do(context.Background(), lease.Request{Action: lease.ActionRead})
	r, known = res.Record, !res.Now.IsZero()
	if !known || r.State == lease.Leased && (r.ID == id || r.ID.IsZero()) {
		return r, known // in order as far as it is told
	}
	s.lock()
	defer s.unlock()
	if s.held != nil && s.incarnation == incarnation {
		s.urgent = s.renewing
		s.schedule(now, 0)
	}
	return r, known
}
