// Package passon passes the optional abilities of an authority or a store on through a wrapper.
package passon

import "github.com/fencedlease/lease"

// Authority returns w, which wraps the authority inner, with the abilities of inner.
func Authority(w, inner lease.Authority) lease.Authority {
	if watcher, ok := inner.(lease.Watcher); ok {
		return struct {
			lease.Authority
			lease.Watcher
		}{w, watcher}
	}
	return w
}

// Store returns w, which wraps the store inner, with the abilities of inner.
func Store(w, inner lease.Store) lease.Store {
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
