package memory

import "github.com/fencedlease/lease/session"

// Lease returns a holder of the lease of that name; the options, which may be nil, are the
// ones of [session.New]. It takes nothing yet: that is [session.Session.Acquire]. Where the
// options name no Clock, the holder runs on the Store's.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	var with session.Options
	if o != nil {
		with = *o
	}
	if with.Clock == nil {
		with.Clock = s.clock.Clock
	}
	return session.New(s.Authority(), name, &with)
}
