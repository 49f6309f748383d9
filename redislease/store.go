package redislease

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/floor"
	"github.com/fencedlease/lease/internal/remember"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is the beginning of all keys and channel names. All programs that share leases must have
	// the same Prefix. A Prefix must not contain a brace. Default: "lease".
	Prefix string

	// Limits restricts the durations that an authority over the store grants. Default: no limits.
	Limits lease.Limits

	// Floor is older than every token that the Store grants, even for a name that has a record
	// already. If the server may have lost tokens, set Floor to the newest token that any resource
	// has seen. Default: the empty token, which is older than all other tokens.
	Floor lease.Token

	// Names is the maximum number of names for which the store remembers the last committed record.
	// Each remembered record takes about 300 bytes. The first request for a forgotten name can take
	// one more exchange with the server. Default: 65,536.
	Names int

	// Keep is how long the server keeps a record after the lease is no longer locked. As long as the
	// record exists, an expired lease can still be renewed. The tokens of a lease keep rising even
	// after its record has expired. Default: one hour. Minimum: one millisecond.
	Keep time.Duration

	// Replicas is the number of replicas that must acknowledge each write and each load. Set
	// Replicas to the number of all replicas that can be promoted. If fewer replicas acknowledge
	// within ReplicaTimeout, the request returns an error and its outcome is unknown. Default: 0,
	// which waits for no replica.
	Replicas int

	// ReplicaTimeout is the longest time that a request waits for the replicas to acknowledge it.
	// Set session.Options.RequestTimeout to a longer time. Default: 1 s. Minimum: one millisecond.
	ReplicaTimeout time.Duration

	// AssumeNoEviction turns off the check of the eviction policy. Set AssumeNoEviction if the
	// server does not permit INFO, the command that reports the policy. Without the check, make sure
	// that the maxmemory-policy of the server is noeviction: see the package documentation.
	AssumeNoEviction bool
}

func (o *Options) complete() (Options, error) {
	var v Options
	if o != nil {
		v = *o
	}
	bad := func(field, value, bound string) error {
		return &lease.FieldError{Field: "Options." + field, Value: value, Bound: bound, Code: lease.ErrOption}
	}
	v.Prefix = cmp.Or(v.Prefix, "lease")
	v.Names = cmp.Or(v.Names, remember.DefaultNames)
	v.Keep = cmp.Or(v.Keep, time.Hour)
	v.ReplicaTimeout = cmp.Or(v.ReplicaTimeout, time.Second)
	switch {
	case strings.ContainsAny(v.Prefix, "{}"):
		return v, bad("Prefix", strconv.Quote(v.Prefix), "must have no brace, which would decide where a cluster keeps the keys")
	case v.Names < 0:
		return v, bad("Names", strconv.Itoa(v.Names), "must not be negative")
	case v.Keep < time.Millisecond:
		return v, bad("Keep", v.Keep.String(), "must be at least 1ms")
	case v.Replicas < 0:
		return v, bad("Replicas", strconv.Itoa(v.Replicas), "must not be negative")
	case v.ReplicaTimeout < time.Millisecond:
		return v, bad("ReplicaTimeout", v.ReplicaTimeout.String(), "must be at least 1ms")
	}
	if _, err := floor.Epoch(v.Floor, math.MaxInt64-1); err != nil {
		return v, err
	}
	if wrong := (*lease.FieldError)(nil); errors.As(v.Limits.Validate(), &wrong) {
		return v, bad(wrong.Field, wrong.Value, wrong.Bound)
	}
	return v, nil
}

// A Store keeps leases in Redis or Valkey. A Store is a [lease.Store] that uses the clock of the
// server. A Store is also a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. A Store is
// safe for use by several goroutines at once.
type Store struct {
	options Options
	floor   uint64 // the epoch of Options.Floor
	servers servers
	memory  *remember.Memory
	tasks   tasks.Group

	turn  chan struct{} // held while a listener is made or subscribes
	ended chan struct{} // closed when the first call of Close ends

	warned atomic.Bool // a warning about the append-only file was logged

	mu       sync.Mutex
	queues   map[*redis.Client]*queue // of the servers that have senders
	policies map[string]time.Time     // by address: when the policy was last checked
	listener *listener                // nil if there is none
	closed   bool
}

// New returns a Store that keeps leases on the servers to which client connects. The client must be
// a [*redis.Client] or a [*redis.ClusterClient]. New sends no request. The Store opens connections
// of its own, with the options of the client. The connections of a Store never retry a request by
// themselves, and they respect contexts. [Store.Close] closes these connections. Hooks of the client
// are not called.
//
// New returns a [*lease.FieldError] if client is nil, if it is neither a [*redis.Client] nor a
// [*redis.ClusterClient], or if an option is out of range. New rejects a [*redis.Ring], because a
// Ring moves names to other servers when a server is down.
func New(client redis.UniversalClient, o *Options) (*Store, error) {
	options, err := o.complete()
	if err != nil {
		return nil, err
	}
	lowest, _ := floor.Epoch(options.Floor, math.MaxInt64-1)
	s := &Store{options: options, floor: lowest, memory: remember.NewMemory(options.Names, nil), turn: make(chan struct{}, 1), ended: make(chan struct{}),
		queues: map[*redis.Client]*queue{}, policies: map[string]time.Time{}}
	if s.servers, err = newServers(client, s.checkNew); err != nil {
		return nil, err
	}
	return s, nil
}

// Lease returns a Session that can hold the lease with the given name. If o is nil, the Session has
// the default options of package session. Lease returns an error if name is malformed or an option
// is out of range. The error wraps a [*lease.FieldError].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. The returned authority is also a [lease.Watcher]
// and a [lease.Lister].
//
// The returned authority sends fewer requests to the server than lease.NewAuthority(s), which loads
// the record before every swap. To renew, change or release a lease, the authority starts from the
// last record that the Store wrote for that lease. If the remembered record is out of date, the
// authority loads the current record and starts again from that record. The authority never refuses
// a request because of an outdated record.
func (s *Store) Authority() lease.Authority { return remember.NewAuthority(s, s.renew, s.memory) }

// Limits returns the limits that the store was made with.
func (s *Store) Limits() lease.Limits { return s.options.Limits }

// Close ends all watches and closes the connections of the Store. Close blocks until no goroutine
// of the Store is running. Requests that are under way fail, and so do requests after Close. Close
// does not close the client that was passed to [New]. If another call of Close is under way, Close
// waits until the other call has ended.
func (s *Store) Close() {
	s.mu.Lock()
	closed, l := s.closed, s.listener
	s.closed = true
	s.mu.Unlock()
	if closed {
		<-s.ended
		return
	}
	defer close(s.ended)
	if l != nil {
		l.lose(errLost)
	}
	s.servers.close()
	_ = s.tasks.Close(context.Background())
}

// buckets is the number of buckets for names. The number of buckets must never change, because a
// program with another number of buckets would store a lease under another key.
const buckets = 1 << 14

// bucket returns the bucket of a name as a number in braces. A Redis cluster chooses the server for
// a key by the text in braces.
func bucket(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return "{" + strconv.Itoa(int(h.Sum32()%buckets)) + "}"
}

// Key returns the Redis key under which the named lease is stored, such as
// "lease:{9759}:jobs/nightly". Use the key with tools such as redis-cli.
func (s *Store) Key(name string) string { return s.options.Prefix + ":" + bucket(name) + ":" + name }

// floorKey returns the key of the floor of a bucket. No record has such a key.
func (s *Store) floorKey(bucket string) string { return s.options.Prefix + "-floor:" + bucket }

// channel returns the channel for the signals of a bucket.
func (s *Store) channel(bucket string) string { return s.options.Prefix + "-signal:" + bucket }

// keys returns the keys that a script takes.
func (s *Store) keys(script *script, name string) []string {
	if script.keys == 1 {
		return []string{s.Key(name)}
	}
	return []string{s.Key(name), s.floorKey(bucket(name))}
}

// Load returns the record of the named lease, and the time of the server.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	reply, err := s.run(ctx, loadScript, name, s.saveTime(), s.keepMicros())
	if err != nil {
		return lease.Snapshot{}, s.explain("load", s.Key(name), err)
	}
	snap, err := reply.snapshot()
	if err != nil {
		return lease.Snapshot{}, unreadableError(s.Key(name), err)
	}
	return snap, nil
}

// keepMicros returns Options.Keep in microseconds, but at least 1.
func (s *Store) keepMicros() int64 { return max(1, s.options.Keep.Microseconds()) }

// saveTime returns the script argument that decides whether [Store.Load] stores the current time of
// the server in Redis. With the argument "always", Load always stores the current time. With the
// argument "over", Load stores the current time only if the lease has ended. A Load that waits for
// replicas must write something, because WAIT waits only for writes over its own connection. If
// Load waits for replicas, saveTime therefore returns "always".
func (s *Store) saveTime() string {
	if s.options.Replicas > 0 {
		return "always"
	}
	return "over"
}
