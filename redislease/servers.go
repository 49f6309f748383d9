package redislease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/fencedlease/lease"
)

// servers gives access to the servers that store the keys.
type servers interface {
	// serverFor returns the primary that stores a key.
	serverFor(ctx context.Context, key string) (*redis.Client, error)

	// serverAt returns the server with an address that came from an answer of the cluster.
	serverAt(ctx context.Context, addr string) (*redis.Client, error)

	// current returns the client that has replaced the given client, or the given client if it was not
	// replaced.
	current(server *redis.Client) *redis.Client

	// answered must be called after each answer of a server.
	answered(server *redis.Client)

	// failOver must be called after a server did not answer in time (slow is true), broke the connection, or
	// answered that it must not carry out the request. If failOver replaces the client of that server, it
	// returns the old client, which the caller must close.
	failOver(ctx context.Context, server *redis.Client, slow bool) (old *redis.Client)

	// If it is time to check for a new primary, the method check returns a function, which the caller must
	// then call. This call can take long. If there is a new primary, the call returns the client of the old
	// primary.
	check() func() (old *redis.Client)

	// all returns all primaries.
	all(ctx context.Context) ([]*redis.Client, error)

	close()
}

// newServers makes new connections to the servers of the given client, with the same options, except that the
// connections never send a command twice. By default, go-redis sends a command again when a connection
// breaks. If the server had already applied a swap, the second attempt would report a conflict, although a
// conflict must mean that the swap was not applied. The parameter wait is how long a server may wait for its
// replicas; it is 0 if there are none.
func newServers(client redis.UniversalClient, wait time.Duration, check func(context.Context, *redis.Conn) error) (servers, error) {
	connect := func(f func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
		return func(ctx context.Context, conn *redis.Conn) error {
			if f != nil {
				if err := f(ctx, conn); err != nil {
					return err
				}
			}
			return check(ctx, conn)
		}
	}
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			o := storeOptions(c.Options())
			o.OnConnect = connect(o.OnConnect)
			return newSingle(o, wait), nil
		}
	case *redis.ClusterClient:
		if c != nil {
			o := *c.Options()
			o.MaxRetries, o.ContextTimeoutEnabled, o.PipelinePoolSize, o.OnConnect = -1, true, -1, connect(o.OnConnect)
			o.ReadTimeout = readTimeout(o.ReadTimeout, wait)
			o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
			o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
			o.NewClient = boundTopology(o.NewClient)
			return cluster{redis.NewClusterClient(&o)}, nil
		}
	}
	return nil, &lease.FieldError{Field: "New.client", Value: fmt.Sprintf("%T", client), Bound: "must be a *redis.Client or a *redis.ClusterClient, and not nil", Code: lease.ErrOption}
}

// readTimeout returns the ReadTimeout of a client. It is at least the given one, and leaves a server enough time
// to wait for its replicas.
func readTimeout(given, wait time.Duration) time.Duration {
	if given < 0 || wait == 0 {
		return given
	}
	return max(cmp.Or(given, 3*time.Second), wait+time.Second) // 3 s is the default of go-redis
}

// storeOptions returns a copy of a client's options, changed so that the connections of a Store respect
// contexts, never send a command twice, and never move to another server by themselves.
func storeOptions(of *redis.Options) *redis.Options {
	o := *of
	o.MaxRetries, o.ContextTimeoutEnabled, o.PipelinePoolSize = -1, true, -1
	o.PushNotificationProcessor = nil // belongs to one client
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// boundTopology returns a function that makes clients for the nodes of a cluster, and limits each CLUSTER
// SLOTS request to topologyTimeout. go-redis asks one node after another, so a frozen node, which accepts
// connections but never answers, would otherwise block it for long.
func boundTopology(connect func(*redis.Options) *redis.Client) func(*redis.Options) *redis.Client {
	if connect == nil {
		connect = redis.NewClient
	}
	return func(o *redis.Options) *redis.Client {
		c := connect(o)
		c.AddHook(topologyHook{})
		return c
	}
}

const topologyTimeout = time.Second

type topologyHook struct{}

func (topologyHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (topologyHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "cluster" {
			bounded, cancel := context.WithTimeout(ctx, topologyTimeout)
			defer cancel()
			ctx = bounded
		}
		return next(ctx, cmd)
	}
}

func (topologyHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// If a client gets the address of the primary from sentinels, go-redis sets the Addr in the options of the
// client to failoverAddr.
const failoverAddr = "FailoverClient"

// The constant replaceEvery is the shortest time between two replacements of a client. A new client that no
// server has answered yet is not replaced for connectPatience if its requests only time out: it could still be
// connecting, over a slow network. The constant askEvery is the shortest time between two requests to the
// sentinels for the primary.
const (
	replaceEvery    = 100 * time.Millisecond
	connectPatience = 3 * time.Second
	askEvery        = time.Second
)

// The type single implements the interface servers for one server, whose address can come from a sentinel. A
// go-redis client keeps its open connections when the address leads to another server. To leave a server, the
// type single therefore replaces the client.
type single struct {
	options *redis.Options
	connect func(*redis.Options) *redis.Client // redis.NewClient, except in tests
	ctx     context.Context                    // of the checks for a new primary; canceled by close
	cancel  context.CancelFunc

	mu       sync.Mutex
	client   *redis.Client
	replaced time.Time
	answers  bool // whether a server has answered the client
	asked    time.Time
	asking   bool      // a check is under way
	dials    int       // attempts to connect through the sentinels that are under way
	since    time.Time // when the first of these attempts began, or another one ended
	primary  string    // the address that a sentinel named last
	stale    bool      // client has connections to an earlier primary
}

// The constant dialPatience limits an attempt to connect through sentinels. In each attempt, go-redis first
// asks the sentinel that it used last, and repeats this request if the options of the client permit retries.
// If that sentinel is frozen, go-redis turns to the other sentinels only after all these requests have
// failed. The limit must be long enough for this. Otherwise, each attempt would end before go-redis turns to
// another sentinel.
const dialPatience = time.Minute

func newSingle(o *redis.Options, wait time.Duration) *single {
	s := &single{options: o, connect: redis.NewClient}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if dial := o.Dialer; o.Addr == failoverAddr {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialPatience, 0, 0 // those of the client are for the sentinels
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			s.dialing(1)
			conn, err := dial(ctx, network, addr)
			s.dialing(-1)
			if err == nil {
				s.mu.Lock()
				now := conn.RemoteAddr().String()
				s.stale = s.stale || s.primary != "" && s.primary != now
				s.primary = now
				s.mu.Unlock()
			}
			return conn, err
		}
	}
	o.ReadTimeout = readTimeout(o.ReadTimeout, wait)
	s.client = s.connect(o)
	return s
}

func (s *single) dialing(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dials == 0 || change < 0 {
		s.since = time.Now()
	}
	s.dials += change
}

// waitsForSentinels reports whether the Store has asked the sentinels for the primary, and has been waiting
// for an answer for a while.
func (s *single) waitsForSentinels() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials > 0 && time.Since(s.since) > askEvery/2
}

func (s *single) serverFor(context.Context, string) (*redis.Client, error) {
	return s.current(nil), nil
}

func (s *single) current(*redis.Client) *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

func (s *single) serverAt(context.Context, string) (*redis.Client, error) {
	return nil, errOneOfCluster
}

var errOneOfCluster = errors.New("the server is one of a cluster: make the store with a redis.ClusterClient")

func (s *single) answered(server *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = s.answers || server == s.client
}

func (s *single) failOver(_ context.Context, server *redis.Client, slow bool) *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	patience := replaceEvery
	if slow && !s.answers {
		patience = connectPatience
	}
	if server != s.client || time.Since(s.replaced) < patience {
		return nil
	}
	return s.replace()
}

// replace makes a new client and returns the old one. The caller must hold s.mu.
func (s *single) replace() (old *redis.Client) {
	old, s.client, s.replaced, s.answers, s.stale = s.client, s.connect(s.options), time.Now(), false, false
	return old
}

func (s *single) check() func() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Addr != failoverAddr || s.asking || time.Since(s.asked) < askEvery {
		return nil
	}
	s.asked, s.asking = time.Now(), true
	return s.ask
}

// ask asks the sentinels for the primary, by opening a connection. The answers of the old primary do not
// show that there is a new one, because a primary that is cut off from the sentinels can still accept writes.
func (s *single) ask() *redis.Client {
	if conn, err := s.options.Dialer(s.ctx, "tcp", failoverAddr); err == nil {
		_ = conn.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if !s.stale {
		return nil
	}
	return s.replace()
}

func (s *single) all(context.Context) ([]*redis.Client, error) {
	return []*redis.Client{s.current(nil)}, nil
}

func (s *single) close() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.client.Close()
}

type cluster struct{ client *redis.ClusterClient }

func (c cluster) serverFor(ctx context.Context, key string) (*redis.Client, error) {
	return c.client.MasterForKey(ctx, key)
}

func (c cluster) serverAt(ctx context.Context, addr string) (*redis.Client, error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, server := range all {
		if server.Options().Addr == addr {
			return server, nil
		}
	}
	return nil, fmt.Errorf("the cluster names a server %s that is not one of its primaries", addr)
}

func (c cluster) all(ctx context.Context) (all []*redis.Client, err error) {
	var mu sync.Mutex
	err = c.client.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error { // called concurrently
		mu.Lock()
		defer mu.Unlock()
		all = append(all, server)
		return nil
	})
	return all, err
}

func (c cluster) current(server *redis.Client) *redis.Client { return server }

func (c cluster) answered(*redis.Client) {}

func (c cluster) failOver(ctx context.Context, _ *redis.Client, _ bool) *redis.Client {
	c.client.ReloadState(ctx)
	return nil
}

func (c cluster) check() func() *redis.Client { return nil }

func (c cluster) close() { _ = c.client.Close() }
