package provider

import (
	"cmp"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// FromAuthority returns a [Provider] that makes a new [session.Session] over the authority for each lease.
// The owner and the [Settings] of each Session come from the [Registry], and all other options of the Session
// come from o, such as the clock and the logger. If the StopWindow of the Settings is zero, the StopWindow
// also comes from o. If o is nil, the options that would come from o have their defaults. All Sessions share
// the values to which o refers, such as its Rand, which must therefore be safe for concurrent use.
//
// FromAuthority does not check its arguments. If the authority is nil, or if o conflicts with the Settings,
// [Registry.Lease] returns an error.
func FromAuthority(authority lease.Authority, o *session.Options) Provider {
	var base session.Options
	if o != nil {
		base = *o
	}
	return func(name, owner string, s Settings) (lease.Lease, error) {
		if authority == nil {
			return nil, fields.Missing("FromAuthority.authority")
		}
		o := base
		o.Owner = owner
		o.Duration, o.RenewInterval, o.RequestTimeout, o.RetryDelay = s.Duration, s.RenewInterval, s.RequestTimeout, s.RetryDelay
		o.StopWindow = cmp.Or(s.StopWindow, o.StopWindow)
		l, err := session.New(authority, name, &o)
		if err != nil {
			return nil, err // a nil *Session would be a Lease that is not nil
		}
		return l, nil
	}
}
