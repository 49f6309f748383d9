package leasetest

import "github.com/fencedlease/lease"

// passOn returns w, which wraps the authority inner, with the abilities of inner.
func passOn(w, inner lease.Authority) lease.Authority {
	if watcher, ok := inner.(lease.Watcher); ok {
		return struct {
			lease.Authority
			lease.Watcher
		}{w, watcher}
	}
	return w
}

// passOnStore returns w, which wraps the store inner, with the abilities of inner.
func passOnStore(w, inner lease.Store) lease.Store {
	watcher, watches := inner.(lease.Watcher)
	limiter, limits := inner.(lease.Limiter)
	switch {
	case watches && limits:
		return struct {
			lease.Store
			lease.Watcher
			lease.Limiter
		}{w, watcher, limiter}
	case watches:
		return struct {
			lease.Store
			lease.Watcher
		}{w, watcher}
	case limits:
		return struct {
			lease.Store
			lease.Limiter
		}{w, limiter}
	}
	return w
}
