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

// Options are the settings of a [Store]. A nil *Options and zero fields have the defaults stated
// here.
type Options struct {
	// Prefix begins the names of all keys and channels. All programs that share leases must have
	// the same. It must have no brace. Default: "lease".
	Prefix string

	// Limits are the durations that an authority over the store grants. Default: none.
	Limits lease.Limits

	// Names is for how many names the store remembers what its authorities committed last: some
	// 300 bytes each. What is forgotten costs a load. Default: 65,536.
	Names int

	// Keep is how long a record is kept that is not locked any more. Until then an expired lease
	// can be renewed. Its tokens never fall, even after that. Default: one hour. At least: one
	// millisecond.
	Keep time.Duration

	// Replicas is how many replicas must acknowledge each write and each load before it is answered.
	// It should be the number of all replicas that can be promoted. Fewer acknowledgements within
	// ReplicaTimeout are an error, and the outcome is unknown. Default: 0, which waits for none.
	Replicas int

	// ReplicaTimeout is how long to wait for the replicas. Give session.Options.RequestTimeout more
	// than that. Default: 1 s. At least: one millisecond.
	ReplicaTimeout time.Duration

	// AssumeNoEviction is for a server that does not permit INFO, which tells its eviction policy.
	// With it the policy is not looked at. It must be noeviction: see the package documentation.
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

// A Store keeps leases in Redis or Valkey. It is a [lease.Store] with the clock of the server, a
// [lease.Watcher], a [lease.Lister] and a [lease.Limiter], and may be used by any number of
// goroutines.
type Store struct {
	options Options
	servers servers
	memory  *memory
	tasks   tasks

	turn chan struct{} // of whoever makes the listener, or subscribes

	mu       sync.Mutex
	listener *listener // nil: nobody listens
	closed   bool
}

// New makes a Store over the servers of a client, a [*redis.Client] or a [*redis.ClusterClient]. It
// makes no request. The Store has connections of its own, with the options of the client, but that
// it never sends a request again by itself, and that contexts are kept to. Close ends them. Hooks of
// the client are not called.
//
// A client that is nil or of another type, and options out of range, are a [*lease.FieldError]. A
// [*redis.Ring] is refused, because it keeps a name on another server when one is down.
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

// Lease returns a holder of the lease of that name. Nil options mean the defaults of a
// [session.Session].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store. It makes fewer exchanges than the one of
// [lease.NewAuthority], which loads before every swap: it begins a renewal, a change and a release
// with what the Store's authorities committed last under that name, though it is never refused
// because of it. It is a [lease.Watcher] and a [lease.Lister].
func (s *Store) Authority() lease.Authority { return newAuthority(s, s.memory) }

// Limits returns the limits the store was made with.
func (s *Store) Limits() lease.Limits { return s.options.Limits }

// Close ends all watches and the connections of the Store, and waits until nothing of it runs any
// more. Requests that are under way fail. The client that New was given stays open.
func (s *Store) Close() {
	s.mu.Lock()
	closed, l := s.closed, s.listener
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	if l != nil {
		l.close()
	}
	s.servers.close()
	s.tasks.wait()
}

// buckets is into how many buckets the names are put. Programs with another number would keep a
// name under another key, so it never changes.
const buckets = 1 << 14

// bucket returns the bucket of a name, in the braces by which a cluster chooses the server.
func bucket(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return "{" + strconv.Itoa(int(h.Sum32()%buckets)) + "}"
}

// Key returns the key of the record of a name, for the tools of Redis, such as
// "lease:{8758}:jobs/nightly".
func (s *Store) Key(name string) string { return s.options.Prefix + ":" + bucket(name) + ":" + name }

// floorKey returns the key of the floor of a bucket. No record has such a key.
func (s *Store) floorKey(bucket string) string { return s.options.Prefix + "-floor:" + bucket }

// channel returns the channel on which the names of a bucket are signalled.
func (s *Store) channel(bucket string) string { return s.options.Prefix + "-signal:" + bucket }

// keys are those that a script takes.
func (s *Store) keys(script *script, name string) []string {
	if script.keys == 1 {
		return []string{s.Key(name)}
	}
	return []string{s.Key(name), s.floorKey(bucket(name))}
}

// Load returns the record under name and the time of the server.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	reply, err := s.run(ctx, loadScript, name, s.touch(), s.step())
	if err != nil {
		return lease.Snapshot{}, s.explain("load", s.Key(name), err)
	}
	snap, err := reply.snapshot()
	if err != nil {
		return lease.Snapshot{}, unreadable(s.Key(name), err)
	}
	return snap, nil
}

// step is how long a record is kept at least, in microseconds.
func (s *Store) step() int64 { return max(1, s.options.Keep.Microseconds()) }

// touch says when a load keeps the time that it tells. A load that waits for replicas must write
// something, because WAIT waits for what its own connection wrote.
func (s *Store) touch() string {
	if s.options.Replicas > 0 {
		return "always"
	}
	return "over"
}
