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
	"github.com/fencedlease/lease/internal/fields"
)

// A Provider makes the lease with the given name and owner. Before a [Registry] calls it, the Registry
// has checked both, and has filled in and checked the [Settings], so that no field except StopWindow is
// zero. As long as the Registry contains the lease, it does not call the Provider again for the same name
// and owner.
//
// A Provider must be safe for concurrent use by multiple goroutines. It should not block: it gets no
// context, so its caller cannot cancel it. It must not call [Registry.Lease] for the lease that it is
// making. If a Provider returns a nil Lease, or a nil pointer as the Lease, without an error,
// Registry.Lease returns an error.
type Provider func(name, owner string, s Settings) (lease.Lease, error)

// A Closer is a Lease with a method Close, which [Registry.Close] and [Registry.Drop] call instead of
// Release. A *session.Session is a Closer. The methods must be safe for concurrent use by multiple
// goroutines.
type Closer interface {
	lease.Lease

	// Close releases the lease and frees the resources of its holder. If ctx is done before the release has
	// finished, Close returns early.
	Close(ctx context.Context) error
}

// A Registry makes leases of several kinds, and returns the same lease for the same kind, name and owner.
// The zero Registry has no kinds and uses the default [Settings]. A Registry is safe for concurrent use by
// multiple goroutines. It must not be copied.
type Registry struct {
	settings Settings

	mu        sync.Mutex // never held while a Provider or a Lease is called
	providers map[string]Provider
	leases    map[key]*entry
	closed    bool
}

type key struct{ kind, name, owner string }

// An entry contains the lease or the error that Registry.Lease returns for one key. It contains neither
// while the Provider runs and the Registry is open.
type entry struct {
	made  chan struct{} // closed once lease and err are set
	lease lease.Lease
	err   error
}

// New returns a Registry whose leases use the given Settings, or the default ones if s is nil. If they are
// invalid, it returns the error of [Settings.Validate].
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

// Settings returns the times that the leases of r use. Each field that was zero in the Settings passed to
// [New] has its default, except StopWindow, which may be zero.
func (r *Registry) Settings() Settings {
	complete, _ := r.settings.withDefaults() // New has validated the settings
	return complete
}

// Register makes p the Provider of the given kind, which must be valid UTF-8 of 1 to 1024 bytes without
// NUL. If the kind is malformed or already registered, or p is nil, Register returns a
// [*lease.FieldError] with the code [lease.ErrOption]. After Close, it returns an error that wraps
// [lease.ErrClosed]. After an error, the Registry is unchanged.
func (r *Registry) Register(kind string, p Provider) error {
	if lease.CheckName(kind) != nil {
		return badKind(kind, fmt.Sprintf("must be valid UTF-8 of 1 to %d bytes without NUL", fields.MaxLabel))
	}
	if p == nil {
		return fields.Missing("Register.p")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
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

// Lease returns the lease with the given kind, name and owner: the same instance for equal arguments, and
// another one if any of them differs. If one caller releases the lease, it is released for all callers
// that share the instance.
//
// The first call with these arguments runs the Provider, and concurrent calls wait for the result. If the
// Provider returns an error, all these calls return an error that names the kind and wraps that error. If
// the Provider panics, the first call panics too, and the others return an error. In both cases, the next
// call of Lease runs the Provider again.
//
// If the kind is not registered, Lease returns a [*lease.FieldError] that lists the registered kinds. If
// the name or owner is malformed, the error wraps that of [lease.CheckName] or [lease.CheckOwner]. After
// Close, it wraps [lease.ErrClosed].
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
		r.makeLease(k, e, p)
	}
	<-e.made
	return e.lease, e.err
}

var errClosed = fmt.Errorf("provider: the Registry is %w", lease.ErrClosed)

// errPanicked is the error that the waiting calls of Registry.Lease wrap if the Provider panics.
var errPanicked = errors.New("the provider panicked")

// makeLease runs the Provider p and stores its result in the entry e, which it removes after an error or a
// panic. If the Registry was closed in the meantime, it closes the new lease.
func (r *Registry) makeLease(k key, e *entry, p Provider) {
	var made lease.Lease
	err := errPanicked
	defer func() {
		r.mu.Lock()
		closed := e.isFinished()
		switch {
		case closed:
		case err != nil:
			delete(r.leases, k)
			e.finish(nil, fmt.Errorf("provider: kind %.80q: %w", k.kind, err))
		default:
			e.finish(made, nil)
		}
		r.mu.Unlock()
		if closed && err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), r.Settings().RequestTimeout)
			defer cancel()
			_ = k.closeLease(ctx, made) // no caller has this lease, so it was never acquired
		}
	}()
	made, err = p(k.name, k.owner, r.Settings())
	if err == nil && isNil(made) {
		err = errors.New("the provider made no lease")
	}
}

// finish sets the lease and the error of the entry, so that the calls of Lease that wait for it return. The
// caller must hold Registry.mu.
func (e *entry) finish(l lease.Lease, err error) {
	e.lease, e.err = l, err
	close(e.made)
}

// isNil reports whether l is nil or a nil pointer.
func isNil(l lease.Lease) bool {
	v := reflect.ValueOf(l)
	return l == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// provider returns the Provider of the given kind. The caller must hold Registry.mu.
func (r *Registry) provider(kind string) (Provider, error) {
	if r.closed {
		return nil, errClosed
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
