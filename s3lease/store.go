package s3lease

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// DefaultPrefix is the default of [Options.Prefix].
const DefaultPrefix = "leases/"

// DefaultPollInterval is the default of [Options.PollInterval].
const DefaultPollInterval = 5 * time.Second

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is what the keys of all objects of the Store begin with. Two stores with the same bucket and
	// prefix share their leases. It has the characters a-z, A-Z, 0-9, '-', '_', '.' and '/', and ends with a
	// slash. Default: [DefaultPrefix].
	Prefix string

	// PollInterval is how often a watch reads the object of its lease, from 10 ms. Each read is a request that the
	// service charges for. Default: [DefaultPollInterval].
	PollInterval time.Duration

	// Limits restrict the durations that an authority over this Store grants. All users of a prefix should set
	// the same. Default: none.
	Limits lease.Limits

	// MaxClockDrift bounds the error of the rate of a client's clock. Default: 0.001.
	MaxClockDrift float64

	// Names is how many names the Store remembers, besides those that are watched: see [engine.Options].
	// Default: 65,536.
	Names int

	// Floor is older than every token that this Store grants: see [engine.Options]. Default: none.
	Floor lease.Token
}

// A Store keeps leases in an S3 bucket. It implements [lease.Store], [lease.Watcher], [lease.Lister] and
// [lease.Limiter]. It is safe for use by several goroutines at once, and need not be closed.
type Store struct {
	observed *engine.Store
	backend  *backend
}

var validPrefix = regexp.MustCompile(`^([a-zA-Z0-9_-][a-zA-Z0-9._-]*/)+$`)

// New returns a Store in a bucket. It sends no request: the first request of the Store checks that the service
// honours conditional writes, with up to three writes of the object "=check", and fails if it does not, with a
// [*lease.PermanentError]. The Store uses the options of the client, but never repeats a request by itself, and
// unless they have an HTTPClient of their own, the Store leaves a server that does not answer.
//
// If the client is nil, bucket is empty or an option is out of range, New returns a [*lease.FieldError].
func New(client *s3.Client, bucket string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	b := &backend{bucket: bucket, prefix: cmp.Or(o.Prefix, DefaultPrefix), poll: cmp.Or(o.PollInterval, DefaultPollInterval),
		gate: engine.NewGate(mostRequests), checking: make(chan struct{}, 1)}
	switch {
	case client == nil:
		return nil, fields.Missing("New.client")
	case bucket == "":
		return nil, fields.Missing("New.bucket")
	case !validPrefix.MatchString(b.prefix) || len(b.prefix) > mostKey:
		return nil, badOption("Prefix", strconv.Quote(o.Prefix), "must be at most 200 letters, digits, '-', '_', '.' and '/', and end with a slash")
	case b.poll < 10*time.Millisecond:
		return nil, badOption("PollInterval", o.PollInterval.String(), "must be at least 10ms")
	}
	b.client = s3.New(client.Options(), func(o *s3.Options) {
		o.Retryer = aws.NopRetryer{} // a write that is repeated after its answer was lost would be refused
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.HTTPClient = leaving(o.HTTPClient)
	})
	s, err := engine.NewStore(b, &engine.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor, Gate: b.gate})
	if err != nil {
		return nil, err
	}
	b.store = s
	return &Store{s, b}, nil
}

func badOption(field, value, bound string) error {
	return &lease.FieldError{Field: "Options." + field, Value: value, Bound: bound, Code: lease.ErrOption}
}

// Lease returns a Session that can hold the lease with the given name, and sends no request. The errors are those
// of [session.New]. A nil o means the default options; a Duration of a minute or more costs less.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store, which needs fewer requests than lease.NewAuthority(s): it starts
// from the record that the Store saw last. Before it refuses a request, it reads the record.
func (s *Store) Authority() lease.Authority { return s.observed.Authority() }

// Limits returns the Limits from the Options of the Store.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record of the named lease. If there is no object for it, Load creates one.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap replaces the record if its version is still old.Version. With [lease.ErrConflict] it returns the current one.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.observed.Swap(ctx, name, old, next)
}

// Watch returns a channel that signals changes, as [lease.Watcher] describes, up to [Options.PollInterval] and one
// request after them. The watch goes on while requests fail, and ends only with ctx.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}

// List returns the leases whose names begin with prefix. It takes a request for each 1,000 keys, and one for each
// lease. It shows the lease of a dead holder as leased until the Store has seen the same record for its duration.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}
