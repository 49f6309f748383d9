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

// A Provider makes the lease with the given name and owner. The [Registry] calls it with a valid name and
// owner, and with valid [Settings] in which no field except StopWindow is zero. As long as the Registry
// contains the lease, it does not call the Provider again for this name and owner.
//
// A Provider must be safe for concurrent use by multiple goroutines. It should not block, because it gets no
// context with which its caller could cancel it. It must not call [Registry.Lease] for the lease that it is
// making. If a Provider returns a nil Lease or a nil pointer without an error, Registry.Lease returns an
// error.
type Provider func(name, owner string, s Settings) (lease.Lease, error)

// A Closer is a Lease that also has a method Close, for example a *session.Session. [Registry.Close] and
// [Registry.Drop] call Close instead of Release. The methods must be safe for concurrent use by multiple
// goroutines.
type Closer interface {
	lease.Lease

	// Close releases the lease and frees the resources of its holder. If ctx ends first, Close returns early.
	Close(ctx context.Context) error
}

// A Registry makes leases of several kinds, and returns the same lease for the same kind, name and owner. The
// zero Registry has no kinds, and uses the default [Settings]. A Registry is safe for concurrent use by
// multiple goroutines, and must not be copied.
type Registry struct {
	settings Settings

	mu        sync.Mutex // not locked during a call of a Provider or a Lease
	providers map[string]Provider
	leases    map[key]*entry
	closed    bool
}

type key struct{ kind, name, owner string }

// An entry contains the lease or the error that Registry.Lease returns for one key. While a Provider is
// making the lease, the entry contains neither of them.
type entry struct {
	made  chan struct{} // closed when lease and err are set
	lease lease.Lease
	err   error
}

// New returns a Registry whose leases use the given Settings. If s is nil, they use the default Settings. If
// the Settings are invalid, New returns the error of [Settings.Validate].
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

// Settings returns the Settings that the leases of r use. Fields that were zero in the call of [New] have
// their defaults, except StopWindow, which may be zero.
func (r *Registry) Settings() Settings {
	complete, _ := r.settings.withDefaults() // cannot fail, because New has validated the settings
	return complete
}

// Register makes p the Provider of the given kind, which must be valid UTF-8 of 1 to 1024 bytes without NUL.
// If the kind is malformed or already registered, or if p is nil, Register returns a [*lease.FieldError] with
// the code [lease.ErrOption]. After Close, Register returns an error that wraps [lease.ErrClosed]. An error
// changes nothing.
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

// Lease returns the lease with the given kind, name and owner. It returns the same lease for the same
// arguments, so if one caller releases the lease, it is released for all callers that share it.
//
// The first call with these arguments runs the Provider, and concurrent calls wait for the result. If the
// Provider returns an error, all these calls return an error that names the kind and wraps that error. If the
// Provider panics, the first call panics too, and the others return an error. In both cases, the next call of
// Lease runs the Provider again.
//
// If the kind is not registered, Lease returns a [*lease.FieldError] that lists the registered kinds. If the
// name or the owner is malformed, the error wraps that of [lease.CheckName] or [lease.CheckOwner]. After
// Close, the error wraps [lease.ErrClosed].
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

// If a Provider panics, other calls of [Registry.Lease] may be waiting for its lease. These calls return an
// error that wraps errPanicked.
var errPanicked = errors.New("the provider panicked")

// makeLease runs the Provider p and stores the result in the entry e. After an error or a panic, it removes
// the entry. If the Registry was closed meanwhile, makeLease closes the new lease.
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

// The method finish sets the lease and the error of the entry. All calls of [Registry.Lease] that are waiting
// for the entry then return. The caller must hold Registry.mu.
func (e *entry) finish(l lease.Lease, err error) {
	e.lease, e.err = l, err
	close(e.made)
}

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
