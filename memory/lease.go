package memory

import "github.com/fencedlease/lease/session"

// Lease returns a holder of the lease with that name. It does not acquire the lease: call
// [session.Session.Acquire]. The options are those of [session.New] and may be nil. The default of their
// Clock is the Store's clock. The errors are those of session.New.
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
