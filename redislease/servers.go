package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/fencedlease/lease"
)

// servers gives access to the servers that store the keys.
type servers interface {
	// serverFor returns the primary that stores a key.
	serverFor(ctx context.Context, key string) (*redis.Client, error)

	// serverAt returns the server with the address addr. The caller has the address from the answer of
	// a server of the cluster.
	serverAt(ctx context.Context, addr string) (*redis.Client, error)

	// slotMoved must be called after a server has answered that it does not have a key.
	slotMoved(ctx context.Context)

	// each calls f for each primary, concurrently.
	each(ctx context.Context, f func(ctx context.Context, server *redis.Client) error) error

	close()
}

// newServers makes new connections to the servers of the given client, with the same options. By
// default, go-redis sends a command again when a connection breaks. If go-redis sent a swap again
// after the server had applied it, the second attempt would report a conflict. But a conflict must
// mean that the server has not applied the swap. The new connections therefore never send a command
// twice.
func newServers(client redis.UniversalClient, unchecked bool) (servers, error) {
	bad := func(value, bound string) error {
		return &lease.FieldError{Field: "New.client", Value: value, Bound: bound, Code: lease.ErrOption}
	}
	connect := func(f func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
		return func(ctx context.Context, conn *redis.Conn) error {
			if f != nil {
				if err := f(ctx, conn); err != nil {
					return err
				}
			}
			if unchecked {
				return nil
			}
			return checkPolicy(ctx, conn)
		}
	}
	const bound = "must be a *redis.Client or a *redis.ClusterClient"
	switch c := client.(type) {
	case nil:
		return nil, bad("nil", bound)
	case *redis.Client:
		if c == nil {
			return nil, bad("nil", bound)
		}
		o := storeOptions(c.Options())
		o.OnConnect = connect(o.OnConnect)
		return single{redis.NewClient(o)}, nil
	case *redis.ClusterClient:
		if c == nil {
			return nil, bad("nil", bound)
		}
		o := *c.Options()
		o.MaxRetries, o.ContextTimeoutEnabled, o.OnConnect = -1, true, connect(o.OnConnect)
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
		return cluster{redis.NewClusterClient(&o)}, nil
	}
	return nil, bad(fmt.Sprintf("%T", client), bound)
}

// storeOptions returns a copy of a client's options, changed for the connections of a Store. With
// these options, a connection never sends a command twice, and never moves to another server by
// itself. A connection with these options also respects contexts.
func storeOptions(of *redis.Options) *redis.Options {
	o := *of
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	o.PushNotificationProcessor = nil // belongs to one client
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// single is one server. Its address can come from a sentinel.
type single struct{ client *redis.Client }

func (s single) serverFor(context.Context, string) (*redis.Client, error) { return s.client, nil }

func (s single) serverAt(context.Context, string) (*redis.Client, error) {
	return nil, errors.New("the server is one of a cluster: make the store with a redis.ClusterClient")
}

func (s single) slotMoved(context.Context) {}

func (s single) each(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	return f(ctx, s.client)
}

func (s single) close() { _ = s.client.Close() }

// cluster is a Redis Cluster.
type cluster struct{ client *redis.ClusterClient }

func (c cluster) serverFor(ctx context.Context, key string) (*redis.Client, error) {
	return c.client.MasterForKey(ctx, key)
}

func (c cluster) serverAt(ctx context.Context, addr string) (found *redis.Client, err error) {
	turn := make(chan struct{}, 1)
	err = c.client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		if node.Options().Addr == addr {
			found = node
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("the cluster names a server %s that is not one of its primaries", addr)
	}
	return found, err
}

func (c cluster) slotMoved(ctx context.Context) { c.client.ReloadState(ctx) }

func (c cluster) each(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	return c.client.ForEachMaster(ctx, f)
}

func (c cluster) close() { _ = c.client.Close() }

// A policyError reports that a server must not keep leases.
type policyError struct{ err error }

func (e *policyError) Error() string { return e.err.Error() }
func (e *policyError) Unwrap() error { return e.err }

// checkPolicy returns an error if a server evicts keys when its memory is full. The Store checks
// the policy over every new connection, because the policy of a promoted replica can differ from
// the policy of the old primary.
func checkPolicy(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx, "memory").Result()
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOPERM") {
			err = fmt.Errorf("the eviction policy of the server is not known: %w; permit +info, or see to it that maxmemory-policy is noeviction and set Options.AssumeNoEviction", err)
			return wrapTwice(lease.Permanent(err))
		}
		return err
	}
	for line := range strings.Lines(info) {
		policy, found := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		if found && policy != "noeviction" {
			return wrapTwice(lease.Permanent(fmt.Errorf("the server has the maxmemory-policy %s, which may drop leases and the order of their tokens: set it to noeviction", policy)))
		}
	}
	return nil
}

// wrapTwice wraps an error of a new connection twice, because go-redis removes the outer wrapper
// with errors.Unwrap.
func wrapTwice(err error) error { return &policyError{&policyError{err}} }
