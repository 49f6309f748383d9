package kubelease

import (
	"cmp"
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Limits restricts the durations that an authority over this Store grants. If a record has more time left
	// than the Limits allow, the Store counts down only the allowed time, from when it first sees the record.
	// The allowed time is MaxDuration for a finite lease, and MaxPeriod for an infinite lease that was
	// broken. All users of a namespace should set the same Limits. Default: no limits.
	//
	// The Limits do not apply to the leases of other programs, unless you use an authority from
	// lease.NewAuthority(store). If a finite lease of another program has more than MaxDuration left, that
	// authority reports an end that is too early. A waiting process can then try to acquire the lease too
	// early, but the acquire is refused.
	Limits lease.Limits

	// MaxClockDrift is the maximum error of the rate of a client's clock: 0.001, the default, allows a clock
	// to gain or lose a millisecond per second. Use the same value for sessions.
	MaxClockDrift float64

	// Floor is a lower bound of the tokens: every token that this Store grants is newer, even for a lease
	// that has a record already. Set Floor when leases move here from another store: see [engine.Options].
	// Default: none.
	Floor lease.Token

	// Names is the maximum number of leases that the Store remembers, not counting watched leases. Each
	// remembered lease takes about 2 kB of memory. If the Store does not remember a lease, it counts the
	// whole duration of the lease from the time at which it next reads the object. Set Names above the number
	// of leases that you list, because Store.List reports a lease as expired only if the Store remembers the
	// lease. When the Store already remembers Names leases, listing another lease does not make the Store
	// remember it. Default: 65,536.
	Names int
}

// mostRequests is the maximum number of requests of a Store that wait for an answer. A watch counts as a
// request only until the API server has confirmed it. mostRequests is below the 100 streams that an API
// server allows on one HTTP/2 connection.
const mostRequests = 64

// A Store keeps leases in the Lease objects of one namespace. A Store does not use a clock of Kubernetes, and
// is safe for use by several goroutines at once. A Store has no Close method, and never closes its client.
// The documentation of [engine.Store] describes the methods of a Store, except for these details:
//
//   - Load reads the object from etcd and not from a cache. If a lease has no object, Load creates it.
//   - Watch signals changes of the object, except renewals. It takes one read and one request that stays
//     open. If the API server does not confirm the watch within 5 s, Watch returns an error. The watch is
//     lost if the connection breaks, or when the API server ends the watch, which it does after some time.
//   - List includes the leases of other programs. It reads all objects of the namespace, 500 at a time.
//
// A Store sends at most 64 requests at a time. Renewals and releases overtake all other requests. If the API
// server is too slow to renew one more lease, an acquire fails with an [engine.FullError].
type Store struct{ *engine.Store }

// New returns a Store for the leases of a namespace. New sends no request. New returns a [*lease.FieldError]
// if the client is nil, if Kubernetes does not allow the name of the namespace, or if an option is out of
// range.
//
// To make the client, pass the result of [ClientConfig] to NewForConfig of
// k8s.io/client-go/kubernetes/typed/coordination/v1. A Clientset has such a client too, which its method
// CoordinationV1 returns. A client with the default rate limit of client-go can delay renewals.
func New(client coordinationclient.CoordinationV1Interface, namespace string, o *Options) (*Store, error) {
	if client == nil {
		return nil, fields.Missing("New.client")
	}
	if bad := validation.IsDNS1123Label(namespace); len(bad) > 0 {
		return nil, &lease.FieldError{Field: "New.namespace", Value: strconv.Quote(namespace), Bound: "must be the name of a namespace: " + bad[0], Code: lease.ErrOption}
	}
	if o == nil {
		o = new(Options)
	}
	e := &backend{client: client, namespace: namespace, gate: engine.NewGate(mostRequests)}
	e.cache.Most = cmp.Or(o.Names, engine.DefaultNames)
	s, err := engine.NewStore(e, &engine.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor, Gate: e.gate})
	if err != nil {
		return nil, err
	}
	e.note = s.Note
	return &Store{s}, nil
}

// Lease returns a Session that can hold the lease with the given name. Lease sends no request. A nil o means
// the defaults of package session. The errors are those of [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store, which needs fewer exchanges with the API server than
// lease.NewAuthority(s). The authority does not load the record before each request, but assumes that the
// record has not changed since the Store has seen it last. Before the authority refuses a request, it reads
// the record again.
func (s *Store) Authority() lease.Authority { return authority{s.Store.Authority()} }

// Swap replaces the record only if its version is still old.Version. Swap stores the remaining time of the
// new record as a duration. If another program holds the lease, Swap returns [lease.ErrForeign]. If
// next.Owner begins with [ForeignOwner], Swap returns a [*lease.FieldError].
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := checkSwap(old, next); err != nil {
		return lease.Snapshot{}, err
	}
	return s.Store.Swap(ctx, name, old, next)
}
