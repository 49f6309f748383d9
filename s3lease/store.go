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

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is the beginning of the keys of all objects of the Store. Stores with the same bucket and
	// prefix share their leases. A Prefix has the characters a-z, A-Z, 0-9, '-', '_', '.' and '/', and ends
	// with a slash. Default: [DefaultPrefix].
	Prefix string

	// PollInterval is the time between two reads of a watch, at least 10 ms. The service charges for each
	// read. Default: [DefaultPollInterval].
	PollInterval time.Duration

	Limits        lease.Limits // as in [engine.Options]. Default: none
	MaxClockDrift float64      // as in [engine.Options]. Default: 0.001
	Names         int          // as in [engine.Options]. Default: 65,536
	Floor         lease.Token  // as in [engine.Options]. Default: none
}

// A Store keeps leases in an S3 bucket. It is safe for use by several goroutines at once, and need not be closed.
// Besides the methods that its engine.Store documents:
//
//   - Load creates the object of a name that has none.
//   - Watch signals a change up to [Options.PollInterval] and one request after it. It goes on while requests fail. It
//     ends with its context, or with an error that no retry can mend.
//   - List takes a request for each 1,000 objects, and one for each of them.
type Store struct {
	*engine.Store
	backend *backend
}

var validPrefix = regexp.MustCompile(`^([a-zA-Z0-9_-][a-zA-Z0-9._-]*/)+$`)

// New returns a Store in a bucket, and sends no request. Before its first load and its first write, the Store
// checks that the service honours conditional writes. To do so, it writes the object "=check" up to three
// times. If the service does not honour them, the load or write fails with a [*lease.PermanentError].
//
// The Store uses the options of the client, but turns off their retries. If the options have no HTTPClient,
// the Store closes connections to a server that does not answer. New returns a [*lease.FieldError] if the
// client is nil, bucket is empty or an option is out of range.
func New(client *s3.Client, bucket string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	b := &backend{bucket: bucket, prefix: cmp.Or(o.Prefix, DefaultPrefix), gate: engine.NewGate(mostRequests), checking: make(chan struct{}, 1)}
	b.poller.Every, b.poller.Read = cmp.Or(o.PollInterval, DefaultPollInterval), b.poll
	switch {
	case client == nil:
		return nil, fields.Missing("New.client")
	case bucket == "":
		return nil, fields.Missing("New.bucket")
	case !validPrefix.MatchString(b.prefix) || len(b.prefix) > mostKey:
		return nil, engine.OptionError("Prefix", strconv.Quote(o.Prefix), "must be at most 200 letters, digits, '-', '_', '.' and '/', and end with a slash")
	case b.poller.Every < 10*time.Millisecond:
		return nil, engine.OptionError("PollInterval", o.PollInterval.String(), "must be at least 10ms")
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

// Lease returns a Session that can hold the lease with the given name, and sends no request. The errors are those
// of [session.New]. A nil o means the default options; a Duration of a minute or more costs less.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store, which needs fewer requests than lease.NewAuthority(s),
// because it starts from the record that the Store has seen last. Before it refuses a request, it reads the
// record.
func (s *Store) Authority() lease.Authority { return s.Store.Authority() }
