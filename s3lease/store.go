package s3lease

import (
	"cmp"
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

// Options configure a [Store]. A nil *Options means the defaults. A zero field means its default.
type Options struct {
	// Prefix is the beginning of the keys of all objects of the Store. Stores with the same bucket and Prefix
	// share their leases. A Prefix has at most 200 of the characters a-z, A-Z, 0-9, '-', '_', '.' and '/', and
	// ends with a slash. Neither a '.' nor a '/' may follow a '/' or stand at the beginning. Default:
	// [DefaultPrefix].
	Prefix string

	// PollInterval is the time from one read of a watched object to the next, at least 10 ms. The service
	// charges for each read. Default: [DefaultPollInterval].
	PollInterval time.Duration

	Limits        lease.Limits // as in [engine.Options]. Default: none
	MaxClockDrift float64      // as in [engine.Options]. Default: 0.001
	Names         int          // as in [engine.Options]. Default: 65,536
	Floor         lease.Token  // as in [engine.Options]. Default: none
}

// A Store stores leases in an S3 bucket. It is safe for concurrent use by several goroutines, and need not be
// closed. In addition to what engine.Store documents:
//
//   - Load creates the object of a lease if it does not exist.
//   - Watch signals a change after at most [Options.PollInterval] and the time of the requests: a Store reads
//     at most 16 watched objects at a time. Failed requests do not end a watch, but its context does, and an
//     error that a retry cannot fix.
//   - List takes one request for each 1,000 objects, and one more for each object.
type Store struct{ *engine.Store }

var validPrefix = regexp.MustCompile(`^([a-zA-Z0-9_-][a-zA-Z0-9._-]*/)+$`)

// New returns a Store in a bucket. It sends no request. Before its first load or write, the Store checks that
// the service supports conditional writes. For this check, the Store tries up to three times to write the
// object "=check". If the service does not support conditional writes, the load or write fails with a
// [*lease.PermanentError].
//
// The Store uses the options of the client, but without its retries. If the options have no HTTPClient, the
// Store closes connections to a server that does not answer. New returns a [*lease.FieldError] if the client
// is nil, the bucket is empty or an option is out of range.
func New(client *s3.Client, bucket string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	b := &backend{bucket: bucket, prefix: cmp.Or(o.Prefix, DefaultPrefix), gate: engine.NewGate(mostRequests)}
	b.checkOnce = engine.CheckOnce(b.check)
	b.Every, b.Read = cmp.Or(o.PollInterval, DefaultPollInterval), b.poll
	switch {
	case client == nil:
		return nil, fields.Missing("New.client")
	case bucket == "":
		return nil, fields.Missing("New.bucket")
	case !validPrefix.MatchString(b.prefix) || len(b.prefix) > mostKey:
		return nil, engine.OptionError("Prefix", strconv.Quote(o.Prefix), "must be at most 200 letters, digits, '-', '_', '.' and '/', end with a slash, and have no '.' or '/' at the beginning or after a '/'")
	case b.Every < 10*time.Millisecond:
		return nil, engine.OptionError("PollInterval", o.PollInterval.String(), "must be at least 10ms")
	}
	b.client = s3.New(client.Options(), func(o *s3.Options) {
		o.Retryer = aws.NopRetryer{} // a retry after a lost answer would be refused although the write was granted
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.HTTPClient = leaving(o.HTTPClient)
	})
	s, err := engine.NewStore(b, &engine.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor, Gate: b.gate})
	if err != nil {
		return nil, err
	}
	b.store = s
	return &Store{s}, nil
}

// Lease returns a Session for the lease with the given name. It sends no request. If o is nil, the Session
// has the default options. A Duration of a minute or more costs less. The errors are those of [session.New].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It needs fewer requests than lease.NewAuthority(s), because
// it starts from the record that the Store has seen last. Before the authority refuses a request, it reads
// the current record.
func (s *Store) Authority() lease.Authority { return s.Store.Authority() }
