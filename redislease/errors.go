package redislease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// describeError adds the key and advice to an error, and marks it with [lease.Permanent] if no retry can succeed.
func (s *Store) describeError(what, key string, err error) error {
	if one, ok := s.servers.(*single); ok && timedOut(err) && one.waitsForSentinels() {
		return fmt.Errorf("redislease: %s %q: %w; the sentinels do not name the primary: check that they are up. If one of them is frozen, make the client with redislease.FailoverOptions, or set ReadTimeout, DialTimeout and MaxRetries in redis.FailoverOptions, so that it is passed within seconds", what, key, err)
	}
	advice, permanent := advise(err)
	err = fmt.Errorf("redislease: %s %q: %w", what, key, err)
	return engine.WithAdvice(err, strings.ReplaceAll(advice, "PREFIX", s.options.Prefix), permanent)
}

// advices says what to do about an error of a server. An entry applies if the error contains its text.
var advices = []struct {
	text      string
	advice    string
	permanent bool
}{
	{"NOAUTH", "give the client the user and the password", true},
	{"WRONGPASS", "correct the user and the password of the client", true},
	{"channel", "permit the user &PREFIX-signal:*", true},
	{"one of the keys", "permit the user ~PREFIX:* and ~PREFIX-floor:*", true},
	{"NOPERM", permissions, true},
	{"ACL failure in script", permissions, true},
	{"can't run this command", permissions, true},
	{"WRONGTYPE", "something else than a lease is kept under this key or under the floor of its bucket: delete that, or give leases another Options.Prefix", true},
	{"READONLY", "the server is a replica: connect to the primary, or through a sentinel", false},
	{"LOADING", "the server is starting: try again", false},
	{"MASTERDOWN", "the server is a replica that lost its primary: connect to the primary", false},
	{"MISCONF", "the server cannot write to its disk: make room there", false},
	{"NOREPLICAS", "the server has fewer replicas than min-replicas-to-write: start them", false},
	{"CLUSTERDOWN", "the cluster has lost servers: start them", false},
	{"MOVED", "the server is one of a cluster: make the store with a redis.ClusterClient", false},
	{"max number of clients", "raise maxclients, or make the pools smaller", false},
	{"Error compiling script", "Redis 7 or newer is needed, or Valkey", true},
	{"unknown command", "Redis 7 or newer is needed, or Valkey, with none of these commands renamed", true},
}

const permissions = "permit the user this command: the documentation of package redislease lists all under Permissions"

// advise returns a text that says how to fix the cause of an error, and whether the error recurs until a
// person has done so.
func advise(err error) (advice string, permanent bool) {
	if text := redisError(err); text != "" {
		for _, a := range advices {
			if strings.Contains(text, a.text) {
				return a.advice, a.permanent
			}
		}
		return "", false
	}
	var dial *net.OpError
	switch {
	case errors.As(err, new(*lease.PermanentError)):
		return "", true
	case errors.Is(err, lease.ErrClosed), errors.Is(err, context.Canceled), errors.As(err, new(*engine.FullError)):
		return "", false
	case errors.Is(err, lease.ErrUnsent):
		return "not sent, because earlier requests had no answer yet: check that the server is up. If it is, it is overloaded: use longer Durations, or another server", false
	case errors.Is(err, redis.ErrClosed):
		return "the connections to this server were just replaced: try again", false
	case errors.Is(err, errReplicas):
		return "check that the replicas are up and connected: INFO replication", false
	case errors.As(err, &dial) && dial.Op == "dial":
		return "no connection: check that the server is up and that the address is correct", false
	case errors.Is(err, redis.ErrPoolTimeout):
		return "all connections are in use: raise PoolSize", false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time: check that the server is up and that the address is correct. If both are, the server is overloaded or runs a long command (SLOWLOG GET)", false
	}
	return "no answer: check that the server is up and that the address is correct", false
}

func unreadableError(key string, err error) error {
	return fmt.Errorf("redislease: key %q: %w; correct it, or free the lease: DEL %s", key, err, key)
}
