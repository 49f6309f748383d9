package redislease

import (
	"cmp"
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is the beginning of all keys and channel names. All programs that share leases must
	// have the same Prefix. It must not contain a brace. Default: "lease".
	Prefix string

	// Limits restricts the durations that an authority over the store grants. Default: no limits.
	Limits lease.Limits

	// Names is the maximum number of names whose last committed record the store remembers. Each
	// name takes about 300 bytes. If the store has forgotten a name, the next request for the name
	// may need one more exchange. Default: 65,536.
	Names int

	// Keep is how long a record is kept after its lease is no longer locked. During that time, an
	// expired lease can still be renewed. The tokens of a name keep rising even after its record is
	// gone. Default: one hour. Minimum: one millisecond.
	Keep time.Duration

	// Replicas is the number of replicas that must acknowledge each write and each load. Set
	// Replicas to the number of all replicas that can be promoted. If fewer replicas acknowledge
	// within ReplicaTimeout, the request returns an error and its outcome is unknown. Default: 0,
	// which waits for no replica.
	Replicas int

	// ReplicaTimeout is how long a request waits until the replicas have acknowledged it. Set
	// session.Options.RequestTimeout to a longer time. Default: 1 s. Minimum: one millisecond.
	ReplicaTimeout time.Duration

	// AssumeNoEviction turns off the check of the eviction policy. Set AssumeNoEviction if the
	// server does not permit INFO, the command that reports the policy. The maxmemory-policy of the
	// server must be noeviction: see the package documentation.
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
	v.Names = cmp.Or(v.Names, defaultNames)
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
	return v, v.Limits.Validate()
}

// A Store keeps leases in Redis or Valkey. It is a [lease.Store] that uses the clock of the server.
// A Store is also a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. It is safe for use by
// several goroutines at once.
type Store struct {
	options Options
	servers servers
	memory  *memory
	tasks   tasks

	turn chan struct{} // a lock for making the listener and for subscribing

	mu       sync.Mutex
	listener *listener // nil if there is none
	closed   bool
}

// New returns a Store over the servers of client, which must be a [*redis.Client] or a
// [*redis.ClusterClient]. New sends no request. The Store opens connections of its own, with the
// options of the client. The connections of a Store never retry a request by themselves, and they
// respect contexts. [Store.Close] closes them. Hooks of the client are not called.
//
// New returns a [*lease.FieldError] if client is nil or has another type, or if an option is out of
// range. New rejects a [*redis.Ring], because a Ring moves names to other servers when a server is
// down.
func New(client redis.UniversalClient, o *Options) (*Store, error) {
	options, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{options: options, memory: newMemory(options.Names), turn: make(chan struct{}, 1)}
	if s.servers, err = newServers(client, options.AssumeNoEviction); err != nil {
		return nil, err
	}
	return s, nil
}

// Lease returns a Session that can hold the lease with the given name. If o is nil, the Session has
// the default options of package session.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It is also a [lease.Watcher] and a [lease.Lister].
//
// The authority of a Store needs fewer exchanges than an authority of [lease.NewAuthority], which
// loads the record before every swap. The authority of a Store computes a renewal, a change or a
// release from the record that the Store committed last under the name. If the remembered record is
// out of date, the authority loads the current record and decides again. It never refuses a request
// because of an outdated record.
func (s *Store) Authority() lease.Authority { return newAuthority(s, s.memory) }

// Limits returns the limits that the store was made with.
func (s *Store) Limits() lease.Limits { return s.options.Limits }

// Close ends all watches and closes the connections of the Store. It blocks until no goroutine of
// the Store is running. Requests that are under way fail. Close does not close the client that was
// passed to [New].
func (s *Store) Close() {
	s.mu.Lock()
	closed, l := s.closed, s.listener
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	if l != nil {
		l.lose(errLost)
	}
	s.servers.close()
	s.tasks.wait()
}

// buckets is the number of buckets for names. The number of buckets never changes, because a
// program with another number would store the same name under another key.
const buckets = 1 << 14

// bucket returns the bucket of a name as a number in braces. A cluster chooses the server of a key
// by the text in braces.
func bucket(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return "{" + strconv.Itoa(int(h.Sum32()%buckets)) + "}"
}

// Key returns the key of the record of a name, such as "lease:{8758}:jobs/nightly". Use the key
// with tools such as redis-cli.
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

// Load returns the record under name, and the time of the server.
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

// keepMicros returns the minimum time that a record is kept, in microseconds.
func (s *Store) keepMicros() int64 { return max(1, s.options.Keep.Microseconds()) }

// saveTime reports which loads store their time in the record. The result "always" means every
// load, and "over" means only a load after the end of the lease. A load that waits for replicas
// must write something, because WAIT waits only for the writes of its own connection.
func (s *Store) saveTime() string {
	if s.options.Replicas > 0 {
		return "always"
	}
	return "over"
}
