package natslease

import (
	"cmp"
	"context"
	"regexp"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
	"github.com/fencedlease/lease/session"
)

// DefaultBucket is the default of [Options.Bucket].
const DefaultBucket = "leases"

// Options are the settings of a [Store]. A nil *Options and zero fields have the defaults stated
// here.
type Options struct {
	// Bucket is the key-value bucket that the leases are kept in. Nothing else should be kept in it.
	// Two stores see the same leases if they have the same bucket. Default: [DefaultBucket].
	Bucket string

	// Limits are the durations that an authority over this Store grants. A record that claims to
	// have more left counts as having that much left from its first sight. So all users of a
	// bucket should have the same MaxDuration. Default: none.
	Limits lease.Limits

	// MaxClockDrift bounds e: the clocks of all clients run at rates from 1-e to 1+e. It should be
	// that of the sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is for how many names the Store remembers what it saw last, besides those that are
	// watched: some 500 bytes each. A lease that is forgotten counts anew from its next sight.
	// Default: 65,536.
	Names int
}

// A Store keeps leases in a key-value bucket of NATS JetStream. It is a [lease.Store] without a
// clock of its own, a [lease.Watcher], a [lease.Lister] and a [lease.Limiter], and may be used by
// any number of goroutines. It needs no closing. The client belongs to whoever made it.
type Store struct{ observed *observe.Store }

// validBucket is what NATS allows as the name of a bucket.
var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// New makes a Store of a client, whose connection should have the options of [ConnectOptions]. It
// asks NATS for the configuration of the bucket.
//
// A nil client, and options out of range, are a [*lease.FieldError]. A bucket that does not exist or
// cannot keep leases, and a server older than 2.12, are a [*lease.PermanentError]. Any other error
// says that NATS could not be asked: call New again.
func New(ctx context.Context, js jetstream.JetStream, o *Options) (*Store, error) {
	if js == nil {
		return nil, &lease.FieldError{Field: "New.js", Value: "nil", Bound: "must be given", Code: lease.ErrOption}
	}
	if o == nil {
		o = new(Options)
	}
	bucket := cmp.Or(o.Bucket, DefaultBucket)
	if !validBucket.MatchString(bucket) {
		return nil, &lease.FieldError{Field: "Options.Bucket", Value: strconv.Quote(bucket), Bound: "must be letters, digits, '-' and '_'", Code: lease.ErrOption}
	}
	e := newEngine(js, bucket)
	s, err := observe.New(e, observe.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names})
	if err != nil {
		return nil, err
	}
	if err := e.checkStream(ctx); err != nil {
		return nil, err
	}
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
func (s *Store) Authority() lease.Authority { return s.observed.Authority() }

// Limits returns the Limits that the Store was made with.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record under name, with the time that it has left as far as this Store has
// observed. It reads the key from the leader of the bucket, and confirms by a write of its own that
// this was current. It creates a key that does not exist.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap writes next, with the time that it has left, if the key is still what old shows. No Snapshot
// comes with a conflict.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.observed.Swap(ctx, name, old, next)
}

// Watch watches the key through a consumer, which is kept in the memory of one server. The watch is
// lost when that server is, at the latest 5 s later.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
