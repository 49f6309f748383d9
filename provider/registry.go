package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fencedlease/lease"
)

// A Provider makes the lease of a name and an owner. Both were checked, and s is valid and
// has no zero field. It should not wait for anything, since there is no context to end it,
// and must not ask its own Registry for the lease that it is making. A Provider may be
// called by several goroutines at once, but never twice for the same name and owner as
// long as a Registry keeps what it returned. No error and a Lease that is nil, or a nil
// pointer, is an error of its own.
type Provider func(name, owner string, s Settings) (lease.Lease, error)

// A Closer is a Lease with something to close: what [Registry.Close] and [Registry.Drop]
// call instead of Release.
type Closer interface {
	lease.Lease
	Close(ctx context.Context) error
}

// A Registry knows kinds of leases and keeps every lease that it made. The zero Registry
// knows no kind and has the default [Settings]. All its methods may be called from any
// number of goroutines; it must not be copied.
type Registry struct {
	settings Settings

	mu        sync.Mutex // never held while a Provider or a Lease is called
	providers map[string]Provider
	leases    map[key]*entry
	closed    bool
}

type key struct{ kind, name, owner string }

// An entry is a lease, or the promise of one.
type entry struct {
	made  chan struct{} // closed when lease and err are set
	lease lease.Lease
	err   error
}

// New returns a Registry whose leases have these Settings; nil stands for the defaults. It
// refuses Settings that [Settings.Validate] refuses.
func New(s *Settings) (*Registry, error) {
	r := new(Registry)
	if s != nil {
		r.settings = *s
	}
	if err := r.settings.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// Settings returns the times of the leases that r makes, with the defaults in their places.
func (r *Registry) Settings() Settings {
	complete, _ := r.settings.complete() // New saw to it that they are valid
	return complete
}

// Register makes p the provider of a kind. The kind is any label that could name a lease. A
// nil provider, and a kind that is registered already, are a [*lease.FieldError] with the
// code [lease.ErrOption], and change nothing. After Close it returns [lease.ErrClosed].
func (r *Registry) Register(kind string, p Provider) error {
	if lease.CheckName(kind) != nil {
		return badKind(kind, fmt.Sprintf("must be valid UTF-8 of 1 to %d bytes without NUL", lease.MaxLabel))
	}
	if p == nil {
		return &lease.FieldError{Field: "Register.p", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return lease.ErrClosed
	}
	if r.providers[kind] != nil {
		return badKind(kind, "is registered already")
	}
	if r.providers == nil {
		r.providers = make(map[string]Provider)
	}
	r.providers[kind] = p
	return nil
}

// Lease returns the lease of a kind, a name and an owner: the same instance each time, so
// that an equal owner shares what is held, and another instance for another name or owner.
// All who share it hold one incarnation: the Release of one, or the end of its session.Run,
// ends it for all.
//
// The first call makes it; calls meanwhile wait for that. An error of the provider is
// returned to all that wait, and not kept: the next call tries again. An unknown kind is a
// [*lease.FieldError] that says which there are, and a name or an owner that
// [lease.CheckName] or [lease.CheckOwner] refuses is theirs. After Close every call returns
// [lease.ErrClosed], as [Registry.Close] tells.
func (r *Registry) Lease(kind, name, owner string) (lease.Lease, error) {
	if err := errors.Join(lease.CheckName(name), lease.CheckOwner(owner)); err != nil {
		return nil, err
	}
	k := key{kind, name, owner}
	r.mu.Lock()
	p, err := r.provider(kind)
	if err != nil {
		r.mu.Unlock()
		return nil, err
	}
	e, ok := r.leases[k]
	if !ok {
		e = &entry{made: make(chan struct{})}
		if r.leases == nil {
			r.leases = make(map[key]*entry)
		}
		r.leases[k] = e
	}
	r.mu.Unlock()
	if !ok {
		r.make(k, e, p)
	}
	<-e.made
	return e.lease, e.err
}

// errPanicked is what those are told who waited for a provider that panicked.
var errPanicked = errors.New("provider: the provider panicked")

// make makes the lease of an entry, and tells those who wait. A failed entry is forgotten,
// also if p panics. If the Registry was closed meanwhile they know already, and what was made
// is given up.
func (r *Registry) make(k key, e *entry, p Provider) {
	var made lease.Lease
	err := errPanicked
	defer func() {
		r.mu.Lock()
		closed := e.ready()
		switch {
		case closed:
		case err != nil:
			delete(r.leases, k)
			e.tell(nil, err)
		default:
			e.tell(made, nil)
		}
		r.mu.Unlock()
		if closed && err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), r.Settings().RequestTimeout)
			defer cancel()
			_ = k.giveUp(ctx, made) // nobody was given it, so it holds nothing
		}
	}()
	made, err = p(k.name, k.owner, r.Settings())
	if err == nil && none(made) {
		err = fmt.Errorf("provider: kind %q made no lease", k.kind)
	}
}

// tell gives an entry to those who wait for it. The Registry's mutex is held.
func (e *entry) tell(l lease.Lease, err error) {
	e.lease, e.err = l, err
	close(e.made)
}

// none reports whether l is nil, or a nil pointer.
func none(l lease.Lease) bool {
	v := reflect.ValueOf(l)
	return l == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// provider returns the provider of a kind. The caller holds r.mu.
func (r *Registry) provider(kind string) (Provider, error) {
	if r.closed {
		return nil, lease.ErrClosed
	}
	if p := r.providers[kind]; p != nil {
		return p, nil
	}
	known := slices.Sorted(maps.Keys(r.providers))
	for i := range known {
		known[i] = fmt.Sprintf("%q", known[i])
	}
	bound := "must be one of " + strings.Join(known, ", ")
	if len(known) == 0 {
		bound = "must be registered first: there is no kind yet"
	}
	return nil, badKind(kind, bound)
}

func badKind(kind, bound string) error {
	return &lease.FieldError{Field: "kind", Value: fmt.Sprintf("%.80q", kind), Bound: bound, Code: lease.ErrOption}
}
