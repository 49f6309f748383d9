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

// Options are the settings of a [Store]. A nil *Options means the default of every field. A zero
// field has the default that its comment names.
type Options struct {
	// Limits restricts the durations that an authority over this Store grants. If a record has more
	// time left than the Limits allow, the Store counts down only the time that they allow. The
	// countdown starts when the Store first sees the record. The Limits allow MaxDuration for a
	// finite lease, whether or not it was broken, and MaxPeriod for an infinite lease that was
	// broken. All users of a namespace should set the same Limits. Default: no limits.
	//
	// The Store and its [Store.Authority] do not apply the Limits to the leases of other programs.
	// The authority of lease.NewAuthority(store) does apply the Limits to the leases of other
	// programs. It reports that the lease of another program ends within MaxDuration, even if that
	// lease ends later. A waiter may therefore try to acquire the lease too early. The authority
	// refuses that acquire.
	Limits lease.Limits

	// MaxClockDrift limits how much faster or slower than real time the clock of a client may run.
	// Each clock must run at a rate from 1-MaxClockDrift to 1+MaxClockDrift. Use the same value for
	// sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is the number of names that the Store remembers. Each name takes about 2 kB. When the
	// Store sees the lease of a forgotten name again, it starts to count the duration of that lease
	// from zero. The Store never forgets the time of a lease that is being watched. Default:
	// 65,536.
	Names int
}

// A Store keeps leases in the Lease objects of one namespace. A Store implements [lease.Store],
// [lease.Watcher], [lease.Lister] and [lease.Limiter]. It does not use a clock of Kubernetes. It is
// safe for use by several goroutines at once. A Store does not have to be closed, and it never
// closes its client.
type Store struct{ observed *observe.Store }

// New returns a Store for the leases of a namespace. It sends no request. New returns a
// [*lease.FieldError] if the client is nil, if Kubernetes does not allow the name of the namespace,
// or if an option is out of range.
//
// To make the client, pass the result of [ClientConfig] to NewForConfig of
// k8s.io/client-go/kubernetes/typed/coordination/v1. CoordinationV1 of a Clientset returns such a
// client too. A client with the default rate limit of client-go may delay renewals.
func New(client coordinationclient.CoordinationV1Interface, namespace string, o *Options) (*Store, error) {
	if client == nil {
		return nil, lease.Missing("New.client")
	}
	if bad := validation.IsDNS1123Label(namespace); len(bad) > 0 {
		return nil, &lease.FieldError{Field: "New.namespace", Value: strconv.Quote(namespace), Bound: "must be the name of a namespace: " + bad[0], Code: lease.ErrOption}
	}
	if o == nil {
		o = new(Options)
	}
	e := &engine{client: client, namespace: namespace, cache: objectCache{most: cmp.Or(o.Names, observe.DefaultNames)}}
	s, err := observe.New(e, &observe.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names})
	if err != nil {
		return nil, err
	}
	e.note = s.Note
	return &Store{s}, nil
}

// Lease returns a Session that can hold the lease with the given name. Nil options mean the
// defaults of a [session.Session]. Lease sends no request. It returns the errors of [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The returned authority needs fewer exchanges with
// the API server than lease.NewAuthority(s), which loads the record before every swap. A request
// starts from the record that the Store saw last. The authority reads the record again before it
// refuses a request.
func (s *Store) Authority() lease.Authority { return authority{s.observed.Authority()} }

// Limits returns the Limits from the Options of the Store.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record of the named lease, with its remaining time. The Store counts the
// remaining time with its own clock: see Time in the package documentation. Load reads the object
// from etcd and not from a cache. If the object does not exist, Load creates it.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap replaces old.Record with the record next, if the object still has the version old.Version.
// Swap stores the remaining time of next as a duration. Swap returns [lease.ErrForeign] if another
// program holds the lease. It returns a [*lease.FieldError] if the Owner of next begins with
// [ForeignOwner].
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := checkSwap(old, next); err != nil {
		return lease.Snapshot{}, err
	}
	return s.observed.Swap(ctx, name, old, next)
}

// Watch returns a channel that signals changes of the object, as [lease.Watcher] describes.
// Renewals send no signal. A watch takes one read and one request that stays open. If the API
// server does not confirm the watch within 5 s, Watch returns an error. The watch is lost when the
// connection breaks. The API server also ends each watch after some time.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
