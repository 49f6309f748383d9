package provider

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// FromAuthority returns the Provider of sessions with an authority. The owner and the four
// times of a session are those that the Provider is given; everything else, such as the
// clock and the logger, comes from o, which may be nil. Sessions share what o points to.
//
// Options in o that cannot be kept with these times, such as a Margin that leaves nothing of
// the Duration, and a nil authority are the error of [Registry.Lease].
func FromAuthority(authority lease.Authority, o *session.Options) Provider {
	var base session.Options
	if o != nil {
		base = *o
	}
	return func(name, owner string, s Settings) (lease.Lease, error) {
		o := base
		o.Owner = owner
		o.Duration, o.RenewInterval, o.RequestTimeout, o.RetryDelay = s.Duration, s.RenewInterval, s.RequestTimeout, s.RetryDelay
		l, err := session.New(authority, name, &o)
		if err != nil {
			return nil, err // and no Lease that is a nil *Session
		}
		return l, nil
	}
}
