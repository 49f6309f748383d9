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

// A Provider makes the lease of a name and an owner. The Registry has checked both. The Settings
// are valid and have no zero field.
//
// A Provider should not wait for anything, because no context ends it. It must not ask its own
// Registry for the lease that it is making. It must be safe for use by several goroutines at once.
// While a Registry keeps a lease, it does not ask for the same name and owner again.
//
// If a Provider returns no error and a nil Lease, or a Lease that is a nil pointer, Lease returns an
// error.
type Provider func(name, owner string, s Settings) (lease.Lease, error)

// A Closer is a Lease with a method Close. [Registry.Close] and [Registry.Drop] call Close instead of
// Release. A *session.Session is a Closer.
type Closer interface {
	lease.Lease

	// Close releases the lease and frees what the holder uses. It returns when that is done or
	// ctx is.
	Close(ctx context.Context) error
}

// A Registry makes leases of several kinds and keeps every lease that it made. The zero Registry
// has no kinds and the default [Settings]. A Registry is safe for use by several goroutines at once.
// It must not be copied.
type Registry struct {
	settings Settings

	mu        sync.Mutex // never held while a Provider or a Lease is called
	providers map[string]Provider
	leases    map[key]*entry
	closed    bool
}

type key struct{ kind, name, owner string }

// An entry is a lease that is made, or being made.
type entry struct {
	made  chan struct{} // closed when lease and err are set
	lease lease.Lease
	err   error
}

// New returns a Registry whose leases have these Settings. Nil Settings are the defaults. The error
// is that of [Settings.Validate].
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

// Settings returns the times of the leases that r makes. Fields that were zero have their defaults.
func (r *Registry) Settings() Settings {
	complete, _ := r.settings.complete() // New has validated them
	return complete
}

// Register makes p the provider of a kind. A kind must be valid UTF-8 of 1 to [lease.MaxLabel] bytes
// without NUL. If the kind is malformed or already registered, or if p is nil, Register returns a
// [*lease.FieldError] with the code [lease.ErrOption] and changes nothing. After Close it returns
// [lease.ErrClosed].
func (r *Registry) Register(kind string, p Provider) error {
	if lease.CheckName(kind) != nil {
		return badKind(kind, fmt.Sprintf("must be valid UTF-8 of 1 to %d bytes without NUL", lease.MaxLabel))
	}
	if p == nil {
		return lease.Missing("Register.p")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return lease.ErrClosed
	}
	if r.providers[kind] != nil {
		return badKind(kind, "is already registered")
	}
	if r.providers == nil {
		r.providers = make(map[string]Provider)
	}
	r.providers[kind] = p
	return nil
}

// Lease returns the lease of a kind, a name and an owner. It returns the same instance each time, and
// another instance for another name or owner. Callers that share an instance share what it holds:
// if one of them releases the lease, all lose it.
//
// The first call runs the [Provider], and calls meanwhile wait for it. If the Provider fails, all of
// them return its error, and the next call runs the Provider again.
//
// If the kind is not registered, Lease returns a [*lease.FieldError] that lists the kinds. A bad name
// is the error of [lease.CheckName], and a bad owner that of [lease.CheckOwner]. After Close, Lease
// returns [lease.ErrClosed].
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

// errPanicked is the error of calls that waited for a Provider that panicked.
var errPanicked = errors.New("provider: the provider panicked")

// make runs the Provider and finishes the entry. If the Provider fails or panics, the entry is
// removed. If Close has finished the entry meanwhile, the lease that was made is dropped.
func (r *Registry) make(k key, e *entry, p Provider) {
	var made lease.Lease
	err := errPanicked
	defer func() {
		r.mu.Lock()
		closed := e.finished()
		switch {
		case closed:
		case err != nil:
			delete(r.leases, k)
			e.finish(nil, err)
		default:
			e.finish(made, nil)
		}
		r.mu.Unlock()
		if closed && err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), r.Settings().RequestTimeout)
			defer cancel()
			_ = k.drop(ctx, made) // no caller has it, so it holds nothing
		}
	}()
	made, err = p(k.name, k.owner, r.Settings())
	if err == nil && isNil(made) {
		err = fmt.Errorf("provider: kind %q made no lease", k.kind)
	}
}

// finish sets the outcome of an entry and wakes the calls that wait for it. The Registry's mutex is
// held.
func (e *entry) finish(l lease.Lease, err error) {
	e.lease, e.err = l, err
	close(e.made)
}

// isNil reports whether l is nil or a nil pointer.
func isNil(l lease.Lease) bool {
	v := reflect.ValueOf(l)
	return l == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// provider returns the provider of a kind. The Registry's mutex is held.
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
	bound := "must be one of the registered kinds: " + strings.Join(known, ", ")
	if len(known) == 0 {
		bound = "must be registered first; no kind is registered"
	}
	return nil, badKind(kind, bound)
}

func badKind(kind, bound string) error {
	return &lease.FieldError{Field: "kind", Value: fmt.Sprintf("%.80q", kind), Bound: bound, Code: lease.ErrOption}
}
