package natslease

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/floor"
	"github.com/fencedlease/lease/observe"
	"github.com/fencedlease/lease/session"
)

// DefaultBucket is the default of [Options.Bucket].
const DefaultBucket = "leases"

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Bucket is the name of the key-value bucket that stores the leases. Do not store anything else
	// in the bucket of the leases. Two stores share their leases if they use the same bucket.
	// Default: [DefaultBucket].
	Bucket string

	// Limits restricts the durations that an authority over this Store grants. If a record has more
	// time left than the Limits allow, the Store counts down only the allowed time. The countdown
	// starts when the Store first sees the record. The allowed time of a finite lease is
	// MaxDuration, whether or not the lease was broken. The allowed time of a broken infinite lease
	// is MaxPeriod. All users of a bucket should set the same Limits. Default: no limits.
	Limits lease.Limits

	// MaxClockDrift is the maximum error of the rate of a client's clock, compared with real time.
	// Each clock must run at a rate from 1-MaxClockDrift to 1+MaxClockDrift. With the default, each
	// clock must run at a rate from 0.999 to 1.001. Use the same value for sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is the number of names that the Store remembers, in addition to the names that are
	// being watched. Each name takes about 500 bytes. If the Store sees the lease of a forgotten
	// name, the Store starts to count the duration of the lease from zero. [Store.List] can report
	// a lease as expired only if the Store remembers the name of the lease. Once the Store
	// remembers as many names as Names allows, a list adds no more names. Set Names above the
	// number of leases that you list. Default: 65,536.
	Names int

	// Floor is older than every token that this Store grants, even if a name has a record already.
	// Set Floor when leases move here from another store: see [observe.Options]. Default: none.
	Floor lease.Token
}

// A Store keeps leases in a key-value bucket of NATS JetStream. A Store implements [lease.Store],
// [lease.Watcher], [lease.Lister] and [lease.Limiter]. A Store does not use a clock of NATS. A
// Store is safe for use by several goroutines at once. A Store has no Close method. A Store never
// closes its NATS client.
type Store struct{ observed *observe.Store }

// validBucket matches the names that NATS allows for a bucket.
var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// New returns a Store that uses the client js. Connect that client with the options of
// [ConnectOptions]. New requests the configuration of the bucket from NATS.
//
// New returns a [*lease.FieldError] if js is nil or if an option is out of range. New returns a
// [*lease.PermanentError] in these cases:
//
//   - The bucket does not exist or does not suit leases.
//   - The server is older than 2.12.
//   - JetStream is not enabled.
//   - The user has no permission to get the configuration.
//   - The client has closed the connection and does not reconnect.
//
// An error of another type means that New could not get the configuration of the bucket. After an
// error of another type, call New again.
//
// [Open] returns a Store before the server can be reached.
func New(ctx context.Context, js jetstream.JetStream, o *Options) (*Store, error) {
	if js == nil {
		return nil, lease.Missing("New.js")
	}
	s, e, err := newStore(js, o)
	if err == nil {
		err = e.checkOnce(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open returns a Store as [New] does, but sends no request, so a program can start before its server.
// The first requests of the Store check the bucket, and return the errors of New, until a check
// succeeds. Connect the client with nats.RetryOnFailedConnect(true) too. Open returns a
// [*lease.FieldError] if js is nil or if an option is out of range.
func Open(js jetstream.JetStream, o *Options) (*Store, error) {
	if js == nil {
		return nil, lease.Missing("Open.js")
	}
	s, _, err := newStore(js, o)
	return s, err
}

func newStore(js jetstream.JetStream, o *Options) (*Store, *engine, error) {
	if o == nil {
		o = new(Options)
	}
	bucket := cmp.Or(o.Bucket, DefaultBucket)
	if !validBucket.MatchString(bucket) {
		return nil, nil, &lease.FieldError{Field: "Options.Bucket", Value: strconv.Quote(bucket), Bound: "must be letters, digits, '-' and '_'", Code: lease.ErrOption}
	}
	e := newEngine(js, bucket)
	s, err := observe.New(e, &observe.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor})
	if err != nil {
		return nil, nil, err
	}
	e.floor, _ = floor.Epoch(o.Floor, math.MaxInt64-1) // observe.New has checked it
	return &Store{s}, e, nil
}

// Lease returns a Session that can hold the lease with the given name. If o is nil, the Session has
// the default options of package session. Lease sends no request. Lease returns the errors of
// [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The returned authority needs fewer round trips to
// NATS than lease.NewAuthority(s), which calls Load before every Swap. A request starts from the
// last record that the Store saw. Before the authority refuses a request, the authority reads the
// record again.
func (s *Store) Authority() lease.Authority { return s.observed.Authority() }

// Limits returns the Limits from the Options of the Store.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record of the named lease, with its remaining time. The Store counts the
// remaining time with its own clock: see Time in the package documentation. Load reads the key from
// the leader of the bucket. Load then writes to another key to confirm that the answer of the
// leader was current. If the key does not exist, Load creates it.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap replaces the record only if its version is still old.Version. Swap stores the remaining time
// of the new record as a duration. If Swap returns [lease.ErrConflict], the Snapshot is zero.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.observed.Swap(ctx, name, old, next)
}

// Watch returns a channel that signals changes of the key, as [lease.Watcher] describes. Watch
// creates a NATS consumer in the memory of one server. If NATS does not confirm the consumer within
// 5 s, Watch returns an error. If the server of the consumer fails, the channel is closed within 5
// s.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
