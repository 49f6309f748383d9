package redislease

import (
	"cmp"
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// Options are the settings of a [Store]. A nil *Options or a zero field means the default.
type Options struct {
	// Prefix is the beginning of all keys and channel names. All programs that share leases must use the
	// same Prefix, which must not contain a brace. Default: "lease".
	Prefix string

	// Limits restricts the durations that an authority over the store grants. Default: no limits.
	Limits lease.Limits

	// Floor is a lower bound of the tokens: every token that the Store grants is newer, even for a lease that
	// has a record already. If the server may have lost tokens, set Floor to the newest token that any
	// resource has seen. Default: the empty token, which is older than all others.
	Floor lease.Token

	// Names is the maximum number of leases for which the Store remembers the last record that it wrote. Each
	// record takes about 300 bytes. A request for any other lease can take one more exchange with the server.
	// Default: 1,048,576.
	Names int

	// Keep is how long the server keeps the record of a lease that is no longer locked. An expired lease can
	// still be renewed during this time. Tokens keep rising even after the record has been removed. Default:
	// one hour. Minimum: one millisecond.
	Keep time.Duration

	// Replicas is the number of replicas that must acknowledge each write and each load. Set Replicas to the
	// number of all replicas that can be promoted. If fewer replicas acknowledge a request within
	// ReplicaTimeout, the request returns an error, and the outcome is unknown. Default: 0, which waits for
	// no replica.
	Replicas int

	// ReplicaTimeout is the longest time that a request waits for the replicas to acknowledge it.
	// Set session.Options.RequestTimeout to a longer time. Default: 1 s. Minimum: one millisecond.
	ReplicaTimeout time.Duration

	// AssumeNoEviction turns off the check of the eviction policy, for a server that does not permit INFO. If
	// you set AssumeNoEviction, make sure that the maxmemory-policy of the server is noeviction: see the
	// README. Without INFO, the Store also gives no warning if the server has no append-only file.
	AssumeNoEviction bool
}

// The method complete returns a copy of the options, in which defaults replace the zero values, and the epoch
// of the option Floor.
func (o *Options) complete() (v Options, floor uint64, err error) {
	if o != nil {
		v = *o
	}
	if floor, err = engine.CheckOptions(v.Limits, v.Names, v.Floor, engine.HighestFloor); err != nil {
		return v, 0, err
	}
	v.Prefix = cmp.Or(v.Prefix, "lease")
	v.Names = cmp.Or(v.Names, engine.DefaultMemory)
	v.Keep = cmp.Or(v.Keep, time.Hour)
	v.ReplicaTimeout = cmp.Or(v.ReplicaTimeout, time.Second)
	switch {
	case strings.ContainsAny(v.Prefix, "{}"):
		err = engine.OptionError("Prefix", strconv.Quote(v.Prefix), "must have no brace, which would decide where a cluster keeps the keys")
	case v.Keep < time.Millisecond:
		err = engine.OptionError("Keep", v.Keep.String(), "must be at least 1ms")
	case v.Replicas < 0:
		err = engine.OptionError("Replicas", strconv.Itoa(v.Replicas), "must not be negative")
	case v.ReplicaTimeout < time.Millisecond:
		err = engine.OptionError("ReplicaTimeout", v.ReplicaTimeout.String(), "must be at least 1ms")
	}
	return v, floor, err
}

// A Store keeps leases in Redis or Valkey. A Store is a [lease.Store] that uses the clock of the server, and
// also a [lease.Watcher], a [lease.Lister] and a [lease.Limiter]. A Store is safe for use by several
// goroutines at once.
type Store struct {
	options Options
	floor   uint64 // the epoch of Options.Floor
	servers servers
	memory  *engine.Memory
	tasks   tasks.Group

	authority lease.Authority

	turn  chan struct{} // locked while a listener is made or subscribes
	ended chan struct{} // closed when the first call of Close ends

	warned atomic.Bool // a warning about the append-only file was logged
	clock  engine.LateClock

	mu       sync.Mutex
	lines    map[string]*line       // by address of the server
	uses     map[*redis.Client]*use // of the clients that wait for answers
	listener *listener              // nil if there is none
	closed   bool
}

// New returns a Store that keeps leases on the servers to which client connects. The client must be a
// [*redis.Client] or a [*redis.ClusterClient]. New sends no request. The Store opens its own connections,
// with the options of the client. Unlike the connections of the client, the connections of the Store respect
// contexts and never retry a request. [Store.Close] closes the connections of the Store. Hooks of the client
// are not called.
//
// New returns a [*lease.FieldError] if client is nil or of another type, or if an option is out of range. New
// rejects a [*redis.Ring], which moves names to other servers when a server is down.
func New(client redis.UniversalClient, o *Options) (*Store, error) {
	options, lowest, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{options: options, floor: lowest, memory: engine.NewMemory(options.Names), turn: make(chan struct{}, 1), ended: make(chan struct{}),
		lines: map[string]*line{}, uses: map[*redis.Client]*use{}}
	s.clock.Server, s.clock.Most = "Redis", options.Names
	wait := options.ReplicaTimeout
	if options.Replicas == 0 {
		wait = 0
	}
	if s.servers, err = newServers(client, wait, s.checkNew); err != nil {
		return nil, err
	}
	s.authority = engine.NewAuthority(s, s.renew, s.memory)
	return s, nil
}

// Lease returns a Session that can hold the lease with the given name. A nil o means the defaults of package
// session. If name is malformed or an option is out of range, the error wraps a [*lease.FieldError].
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the Store, which is also a [lease.Watcher] and a [lease.Lister].
//
// The authority sends fewer requests to the server than lease.NewAuthority(s), which loads the record before
// every swap. To renew, change or release a lease, it starts from the last record that the Store wrote for
// the lease. If that record is out of date, it loads the current record and tries again, so it never refuses
// a request because of an outdated record.
func (s *Store) Authority() lease.Authority { return s.authority }

// Limits returns the limits that the store was made with.
func (s *Store) Limits() lease.Limits { return s.options.Limits }

// Close ends all watches, closes the connections of the Store, and waits until all its goroutines have ended.
// Close does not close the client that was passed to [New]. Running requests fail, and so do requests after
// Close. If another call of Close is running, Close waits until that call has ended.
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
	s.closeLines()
}

// buckets is the number of buckets for names. This number must never change, because programs with different
// numbers would store the same lease under different keys.
const buckets = 1 << 14

// The function bucket returns the bucket of a name as a number in braces. A cluster chooses the server of a
// key only by the text in the braces, so all keys of a bucket are on the same server.
func bucket(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return "{" + strconv.Itoa(int(h.Sum32()%buckets)) + "}"
}

// Key returns the Redis key of a lease, such as "lease:{9759}:jobs/nightly", for tools such as redis-cli.
func (s *Store) Key(name string) string { return s.options.Prefix + ":" + bucket(name) + ":" + name }

// floorKey returns the key under which the highest epoch of a bucket is stored. No record has such a key.
func (s *Store) floorKey(bucket string) string { return s.options.Prefix + "-floor:" + bucket }

// channel returns the name of the Redis channel on which changes of the leases in a bucket are published.
func (s *Store) channel(bucket string) string { return s.options.Prefix + "-signal:" + bucket }

// call returns the number of the keys of a script, the keys for a name, and the other arguments of the script.
func (s *Store) call(script *script, name string, args ...any) []any {
	call := []any{script.keys, s.Key(name)}
	if script.keys == 2 {
		call = append(call, s.floorKey(bucket(name)))
	}
	return append(call, args...)
}

// Load returns the record of the named lease, and the time of the server. If the clock of the server was set
// back, the time of the server can be before the end of a lease that has ended. If the Store has seen the
// same record for so long that the lease must have ended, Load therefore returns the end of the lease instead
// of the time of the server.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	reply, err := s.run(ctx, other, loadScript, name, nil, s.saveTime(), s.keepMicros())
	if err != nil {
		return lease.Snapshot{}, s.describeError("load", s.Key(name), err)
	}
	snap, err := reply.snapshot(name, &s.clock)
	if err != nil {
		return lease.Snapshot{}, unreadableError(s.Key(name), err)
	}
	return snap, nil
}

func (s *Store) keepMicros() int64 { return max(1, s.options.Keep.Microseconds()) }

// saveTime returns an argument for the script of [Store.Load]. With "always", the script always stores the
// server's time in Redis. With "over", the script does so only if the lease has ended. With Options.Replicas,
// a Load must always write something, because WAIT waits only for writes over its own connection.
func (s *Store) saveTime() string {
	if s.options.Replicas > 0 {
		return "always"
	}
	return "over"
}
