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

// Options are the settings of a [Store]. A nil *Options and zero fields have the defaults stated
// here.
type Options struct {
	// Prefix is the beginning of every key. Stores with the same Prefix see the same leases. A
	// Prefix should not be the beginning of another one. Default: [DefaultPrefix].
	Prefix string

	// Limits are the durations that an authority over this Store grants. A key that claims to have
	// more left counts as having the longest duration left, from its first observation. So all
	// users of a Prefix should have the same MaxDuration. Default: none.
	Limits lease.Limits

	// MaxClockDrift bounds e: the clocks of all clients run at rates from 1-e to 1+e. Use the same
	// value for sessions. Default: 0.001.
	MaxClockDrift float64

	// Names is the number of names for which the Store remembers what it saw last, besides those
	// that are watched. Each takes some 500 bytes. A lease that was forgotten counts again from its
	// next observation. Default: 65,536.
	Names int

	// SilenceWarning is how long etcd may leave requests unanswered before the Store logs a
	// warning. It should be at most the duration of the leases. It shows a client that never
	// recovers from a connection that died. Default: 15 s.
	SilenceWarning time.Duration

	// Logger gets the warning of SilenceWarning. Default: slog.Default().
	Logger *slog.Logger
}

const defaultSilenceWarning = 15 * time.Second

// A Store keeps leases in etcd. It is a [lease.Store] without a clock of its own, a
// [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. It is safe for use by several goroutines
// at once. It needs no closing, and does not close the client.
type Store struct{ observed *observe.Store }

// New makes a Store of a client. It makes no request. A nil client, and options out of range,
// are a [*lease.FieldError].
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

// Lease returns a holder of the lease with that name. Nil options mean the defaults of a
// [session.Session].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It needs fewer exchanges than that of
// [lease.NewAuthority], which loads before every swap: a request begins with what the Store saw
// last. It is never refused because of that.
func (s *Store) Authority() lease.Authority { return s.observed.Authority() }

// Limits returns the Limits that the Store was made with.
func (s *Store) Limits() lease.Limits { return s.observed.Limits() }

// Load returns the record under name, by a linearizable read, with the time that is left as far as
// this Store has observed. It creates a key that does not exist.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.observed.Load(ctx, name)
}

// Swap writes next, with the time that it has left, if the key has not changed since old. It
// returns the current Snapshot with a conflict, unless the key was deleted.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return s.observed.Swap(ctx, name, old, next)
}

// Watch watches the key. The watch is lost when etcd cancels it, which a member does that is cut
// off from the majority. All watches of a client share a stream.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.observed.Watch(ctx, name)
}
