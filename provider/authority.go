package provider

import (
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// FromAuthority returns a Provider that makes sessions over an authority. The Registry gives each
// session its owner and the four times of [Settings]. All other options, such as the clock and the
// logger, come from o, which may be nil. The sessions share what o points to.
//
// FromAuthority checks nothing. If authority is nil, or if o does not fit the Settings,
// [Registry.Lease] returns the error.
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
			return nil, err // a nil *Session would be a Lease that is not nil
		}
		return l, nil
	}
}
