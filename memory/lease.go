package memory

import "github.com/fencedlease/lease/session"

// Lease returns a Session for the lease with the given name. To acquire the lease, call
// [session.Session.Acquire]. The options o are those of [session.New] and may be nil. If o.Clock is nil, the
// Session uses the clock of the Store. Lease returns the errors of session.New.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	var with session.Options
	if o != nil {
		with = *o
	}
	if with.Clock == nil {
		with.Clock = s.clock.Clock()
	}
	return session.New(s.Authority(), name, &with)
}
