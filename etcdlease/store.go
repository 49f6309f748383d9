package etcdlease

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
	"github.com/fencedlease/lease/session"
)

// DefaultPrefix is the default of [Options.Prefix].
const DefaultPrefix = "lease/"

// Options are the settings of a [Store]. If the *Options is nil or a field is zero, the default
// applies.
type Options struct {
	// Prefix is the beginning of every key. Stores with the same Prefix share their leases. A
	// Prefix should not be the beginning of another Prefix. Default: [DefaultPrefix].
	Prefix string

	// Limits bounds the durations that an authority over this Store grants. If a key claims that
	// its lease has more time left than Limits allows, the Store counts the longest allowed
	// duration, from its first observation of the key. So all users of a Prefix should have the
	// same MaxDuration. Default: no limits.
	Limits lease.Limits

	// MaxClockDrift is the maximum drift e of the clocks of all clients. Each clock must run at a
	// rate from 1-e to 1+e. Use the same value for sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is the number of names for which the Store remembers its last observation. It does not
	// include the names that are watched. Each name takes about 500 bytes. If a name was forgotten,
	// the time of its lease is counted again from the next observation. Default: 65,536.
	Names int

	// SilenceWarning is how long etcd may leave requests unanswered before the Store logs a
	// warning. It should not be longer than the leases last. The warning reveals a client that does
	// not recover from a dead connection. Default: 15 s.
	SilenceWarning time.Duration

	// Logger receives the warning of SilenceWarning. Default: slog.Default().
	Logger *slog.Logger
}

const defaultSilenceWarning = 15 * time.Second

// A Store keeps leases in etcd. It is a [lease.Store], although etcd has no clock. It is also a
// [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. It is safe for use by several goroutines
// at once. A Store need not be closed, and it does not close its client.
type Store struct{ observed *observe.Store }

// New returns a Store that uses client. It sends no request. It returns a [*lease.FieldError] if
// client is nil or an option is out of range.
func New(client *clientv3.Client, o *Options) (*Store, error) {
	if client == nil {
		return nil, lease.Missing("New.client")
	}
	if o == nil {
		o = new(Options)
	}
	prefix := o.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if !utf8.ValidString(prefix) || strings.IndexByte(prefix, 0) >= 0 {
		return nil, &lease.FieldError{Field: "Options.Prefix", Value: prefix, Bound: "must be valid UTF-8 without NUL", Code: lease.ErrOption}
	}
	if o.SilenceWarning < 0 {
		return nil, &lease.FieldError{Field: "Options.SilenceWarning", Value: o.SilenceWarning.String(), Bound: "must not be negative", Code: lease.ErrOption}
	}
	e := &engine{client: client, prefix: prefix, silence: silence{after: cmp.Or(o.SilenceWarning, defaultSilenceWarning), logger: o.Logger}}
	if e.silence.logger == nil {
		e.silence.logger = slog.Default()
	}
	s, err := observe.New(e, observe.Options{Limits: o.Limits, MaxClockDrift: o.MaxClockDrift, Names: o.Names})
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Lease returns a holder of the lease with the given name. If o is nil, the holder has the default
// options of a [session.Session].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The authority needs fewer exchanges than the one
// of [lease.NewAuthority], which loads the record before every swap. The authority computes a new
// record from the record that the Store observed last. It never refuses a request because of an
// outdated record.
func (s *Store) Authority() lease.Authority { return s.observed.Authority() }

// Limits returns the limits that the Store was made with.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record under name, with a linearizable read. The Store counts the time that the
// lease has left from its first observation of the record. If the key does not exist, Load creates
// it.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap replaces old.Record by next, if the key has not changed since the load of old. It writes how
// much time the lease has left. If the key has changed, Swap returns [lease.ErrConflict] and the
// current Snapshot. If the key was deleted, that Snapshot is zero.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.observed.Swap(ctx, name, old, next)
}

// Watch returns a channel that receives the signals of [lease.Watcher]. The watch is lost if etcd
// cancels it. A member of etcd cancels its watches when it is cut off from the majority. All
// watches of a client share one stream.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
