// Package wrap gives the wrapper of an authority or a store the optional abilities of the wrapped value.
package wrap

import "github.com/fencedlease/lease"

// Authority returns w, which wraps the authority inner, with exactly the abilities of inner. For each of
// them, the result uses the method of w, or that of inner if w has none.
func Authority(w, inner lease.Authority) lease.Authority {
	watcher, watches := ability[lease.Watcher](w, inner)
	lister, lists := ability[lease.Lister](w, inner)
	switch {
	case watches && lists:
		return struct {
			lease.Authority
			lease.Watcher
			lease.Lister
		}{w, watcher, lister}
	case watches:
		return struct {
			lease.Authority
			lease.Watcher
		}{w, watcher}
	case lists:
		return struct {
			lease.Authority
			lease.Lister
		}{w, lister}
	}
	return struct{ lease.Authority }{w}
}

// Store is like [Authority], for a store.
func Store(w, inner lease.Store) lease.Store {
	watcher, watches := ability[lease.Watcher](w, inner)
	lister, lists := ability[lease.Lister](w, inner)
	limiter, limits := ability[lease.Limiter](w, inner)
	switch {
	case watches && lists && limits:
		return struct {
			lease.Store
			lease.Watcher
			lease.Lister
			lease.Limiter
		}{w, watcher, lister, limiter}
	case watches && lists:
		return struct {
			lease.Store
			lease.Watcher
			lease.Lister
		}{w, watcher, lister}
	case watches && limits:
		return struct {
			lease.Store
			lease.Watcher
			lease.Limiter
		}{w, watcher, limiter}
	case lists && limits:
		return struct {
			lease.Store
			lease.Lister
			lease.Limiter
		}{w, lister, limiter}
	case watches:
		return struct {
			lease.Store
			lease.Watcher
		}{w, watcher}
	case lists:
		return struct {
			lease.Store
			lease.Lister
		}{w, lister}
	case limits:
		return struct {
			lease.Store
			lease.Limiter
		}{w, limiter}
	}
	return struct{ lease.Store }{w}
}

// ability returns w if it has the ability T, inner if only inner has it, and false if inner lacks it.
func ability[T any](w, inner any) (a T, has bool) {
	if a, has = inner.(T); !has {
		return a, false
	}
	if own, ok := w.(T); ok {
		a = own
	}
	return a, true
}
