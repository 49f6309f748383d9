package etcdlease

import (
	"cmp"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/logqueue"
	"github.com/fencedlease/lease/session"
)

// DefaultPrefix is the default of [Options.Prefix].
const DefaultPrefix = "lease/"

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is the beginning of every key. Stores with the same Prefix share their leases. No Prefix
	// should be the beginning of another one. Default: [DefaultPrefix].
	Prefix string

	Limits        lease.Limits // as in [engine.Options]. Default: none
	MaxClockDrift float64      // as in [engine.Options]. Default: 0.001
	Floor         lease.Token  // as in [engine.Options]. Default: none

	// Names is as in [engine.Options]. Set Names above the number of leases that you list, because Store.List
	// reports a lease as expired only if the Store remembers the lease. Default: 65,536.
	Names int

	// SilenceWarning is how long etcd can leave all requests unanswered before the Store logs a warning. The
	// Store logs no other warning until etcd answers again. A warning can mean that the client does not
	// recover from a dead connection. SilenceWarning should not be longer than the duration of the leases.
	// Default: 15 s.
	SilenceWarning time.Duration

	// Logger receives the warning of SilenceWarning. Default: slog.Default().
	Logger *slog.Logger
}

// mostRequests is the maximum number of requests that a Store sends at a time. etcd itself has no such limit.
const mostRequests = 64

const defaultSilenceWarning = 15 * time.Second

// A Store keeps leases in etcd, although etcd has no clock. A Store is safe for use by several goroutines at
// once. A Store need not be closed, and never closes its client. The documentation of [engine.Store]
// describes the methods of a Store, except for these details:
//
//   - Load is a linearizable read. If a lease has no key, Load creates it.
//   - Swap returns the current Snapshot with a [lease.ErrConflict]. The Snapshot is zero if the key was
//     deleted.
//   - Watch returns an error if etcd does not confirm the watch within 5 s. The watch is lost if etcd cancels
//     it, as a member of the cluster does when it is cut off from the majority. All watches of a client share
//     one stream.
//   - List yields the leases sorted by name, and reads a few hundred keys in each request.
//
// A Store sends at most 64 requests at a time. Renewals and releases overtake all other requests. If etcd is
// too slow to renew one more lease, an acquire fails with an [engine.FullError].
type Store struct{ *engine.Store }

// New returns a Store that uses client. New sends no request. New returns a [*lease.FieldError] if client is
// nil or an option is out of range.
func New(client *clientv3.Client, o *Options) (*Store, error) {
	if client == nil {
		return nil, fields.Missing("New.client")
	}
	if o == nil {
		o = new(Options)
	}
	prefix := cmp.Or(o.Prefix, DefaultPrefix)
	if !utf8.ValidString(prefix) || strings.IndexByte(prefix, 0) >= 0 {
		return nil, engine.OptionError("Prefix", strconv.Quote(prefix), "must be valid UTF-8 without NUL")
	}
	if o.SilenceWarning < 0 {
		return nil, engine.OptionError("SilenceWarning", o.SilenceWarning.String(), "must not be negative")
	}
	e := &backend{client: client, prefix: prefix, gate: engine.NewGate(mostRequests), silence: silenceLogger{client: client, after: cmp.Or(o.SilenceWarning, defaultSilenceWarning), log: logqueue.Queue{To: o.Logger}}}
	s, err := engine.NewStore(e, &engine.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names, Floor: o.Floor, Gate: e.gate})
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Lease returns a Session that can hold the lease with the given name. A nil o means the defaults of package
// session. If name is malformed or an option is out of range, the error wraps a [*lease.FieldError].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The authority computes each new record from the record that
// the Store has seen last. So the authority sends fewer requests to etcd than an authority from
// [lease.NewAuthority], which loads the record before every swap. The authority never refuses a request
// because of an outdated record.
func (s *Store) Authority() lease.Authority { return s.Store.Authority() }
