package natslease

import (
	"cmp"
	"context"
	"regexp"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// DefaultBucket is the default of [Options.Bucket].
const DefaultBucket = "leases"

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Bucket is the name of the key-value bucket that stores the leases. Nothing else should be stored in
	// this bucket. Stores with the same bucket share their leases. Default: [DefaultBucket].
	Bucket string

	Limits        lease.Limits // as in [engine.Options]. Default: none
	MaxClockDrift float64      // as in [engine.Options]. Default: 0.001
	Floor         lease.Token  // as in [engine.Options]. Default: none

	// Names is as in [engine.Options]. Set Names above the number of leases that you list, because Store.List
	// reports a lease as expired only if the Store remembers the lease. Default: 65,536.
	Names int
}

// A Store keeps leases in a key-value bucket of NATS JetStream. A Store does not use a clock of NATS, and is
// safe for use by several goroutines at once. A Store has no Close method, and never closes its NATS client.
// The documentation of [engine.Store] describes the methods of a Store, except for these details:
//
//   - Load creates the key of a lease that has none: see Reads in the package documentation.
//   - Swap returns a zero Snapshot with a [lease.ErrConflict].
//   - Watch returns an error if NATS does not confirm its consumer within 5 s. The channel is closed within 5 s if the
//     server of the consumer fails: see Watches in the package documentation.
//   - List yields the leases sorted by name. It first requests the names, and then reads the leases, several
//     at the same time. Each lease takes two round trips, because List confirms each read as Load does.
type Store struct{ *engine.Store }

// validBucket matches the names that NATS allows for a bucket.
var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// New returns a Store that uses the client js, which should be connected with [ConnectOptions]. New requests
// the configuration of the bucket from NATS.
//
// New returns a [*lease.FieldError] if js is nil or if an option is out of range, and a
// [*lease.PermanentError] in these cases:
//
//   - The bucket does not exist or is not suitable for leases.
//   - The server is older than 2.12.
//   - JetStream is not enabled.
//   - The user has no permission to get the configuration.
//   - The client has closed the connection and does not reconnect.
//
// Any other error means that New could not get the configuration of the bucket. Call New again in that case.
// [Open] returns a Store even if the server cannot be reached yet.
func New(ctx context.Context, js jetstream.JetStream, o *Options) (*Store, error) {
	s, e, err := newStore("New", js, o)
	if err == nil {
		err = e.checkOnce(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open returns a Store as [New] does, but sends no request, so that a program can start before its server.
// Connect the client with nats.RetryOnFailedConnect(true), too. The first requests of the Store check the
// bucket, and return the errors of New until a check has succeeded. Open returns a [*lease.FieldError] if js
// is nil or if an option is out of range.
func Open(js jetstream.JetStream, o *Options) (*Store, error) {
	s, _, err := newStore("Open", js, o)
	return s, err
}

func newStore(function string, js jetstream.JetStream, o *Options) (*Store, *backend, error) {
	if js == nil {
		return nil, nil, fields.Missing(function + ".js")
	}
	if o == nil {
		o = new(Options)
	}
	bucket := cmp.Or(o.Bucket, DefaultBucket)
	if !validBucket.MatchString(bucket) {
		return nil, nil, engine.OptionError("Bucket", strconv.Quote(bucket), "must be letters, digits, '-' and '_'")
	}
	e := newBackend(js, bucket)
	s, err := engine.NewStore(e, &engine.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor, Gate: e.gate})
	if err != nil {
		return nil, nil, err
	}
	e.floor, _ = engine.CheckOptions(o.Limits, o.Names, o.Floor, engine.HighestFloor) // engine.NewStore has done it
	return &Store{s}, e, nil
}

// Lease returns a Session that can hold the lease with the given name. Lease sends no request. A nil o means
// the defaults of package session. The errors are those of [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store, which needs fewer round trips to NATS than
// lease.NewAuthority(s). The authority does not load the record before each request, but assumes that the
// record has not changed since the Store has seen it last. Before the authority refuses a request, it reads
// the record again.
func (s *Store) Authority() lease.Authority { return s.Store.Authority() }
