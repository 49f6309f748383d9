package kubelease

import (
	"cmp"
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options and zero fields have the defaults stated
// here.
type Options struct {
	// Limits are the durations that an authority over this Store grants. A record that has more
	// left than that counts as having that much left from its first sight, so all users of a
	// namespace should have the same MaxDuration. Leases of other programs are not bounded.
	// Default: none.
	Limits lease.Limits

	// MaxClockDrift bounds e: the clocks of all clients run at rates from 1-e to 1+e. It should be
	// that of the sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is for how many names the Store remembers what it saw last: some 2 kB each. A lease
	// that is forgotten, and that is not watched, counts anew from its next sight. Default: 65,536.
	Names int
}

// A Store keeps leases in the Lease objects of a namespace. It is a [lease.Store] without a clock of
// its own, a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. It may be used by any number of
// goroutines. It needs no closing; the client belongs to the caller.
type Store struct{ observed *observe.Store }

// New makes a Store of a client and a namespace. It makes no request. A nil client, a namespace that
// Kubernetes does not allow, and options out of range are a [*lease.FieldError].
//
// The client is that of a Clientset's CoordinationV1, or one that NewForConfig of
// k8s.io/client-go/kubernetes/typed/coordination/v1 makes of a [ClientConfig]. One that is made of
// the defaults delays renewals: see there.
func New(client coordinationclient.CoordinationV1Interface, namespace string, o *Options) (*Store, error) {
	if client == nil {
		return nil, &lease.FieldError{Field: "New.client", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	if bad := validation.IsDNS1123Label(namespace); len(bad) > 0 {
		return nil, &lease.FieldError{Field: "New.namespace", Value: strconv.Quote(namespace), Bound: "must be the name of a namespace: " + bad[0], Code: lease.ErrOption}
	}
	if o == nil {
		o = new(Options)
	}
	e := &engine{client: client, namespace: namespace, memory: memory{most: cmp.Or(o.Names, observe.DefaultNames)}}
	s, err := observe.New(e, observe.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names})
	if err != nil {
		return nil, err
	}
	e.note = s.Note
	return &Store{s}, nil
}

// Lease returns a holder of the lease of that name. Nil options mean the defaults of a
// [session.Session].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It makes fewer exchanges than the one of
// [lease.NewAuthority], which loads before every swap: a request begins with what the Store saw
// last, though it is never refused because of it.
func (s *Store) Authority() lease.Authority { return authority{s.observed.Authority()} }

// Limits returns the Limits that the Store was made with.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record under name, by a read from etcd, with the time that it has left as far as
// this Store has observed. It creates an object that does not exist.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap writes next, with the time that it has left, if the object is still what old shows. A change
// of a lease that another kind of program holds fails with [lease.ErrForeign].
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := checkSwap(old, next); err != nil {
		return lease.Snapshot{}, err
	}
	return s.observed.Swap(ctx, name, old, next)
}

// Watch watches the object. It takes a read and a request that stays open. Renewals are not
// signalled. The watch is lost when the connection breaks, and when the server ends it, as it does
// after some time.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
