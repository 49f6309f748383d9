package redislease_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// A pair is a primary and a replica, with two proxies. The clients use one proxy, and the replica
// uses the second proxy.
type pair struct {
	primary, replica *redisserver.Server
	front, link      *redisserver.Proxy
}

func newPair(t testing.TB, settings ...string) *pair {
	t.Helper()
	p := &pair{primary: ownServer(t, settings...)}
	p.front, p.link = proxy(t, p.primary.Addr()), proxy(t, p.primary.Addr())
	p.replica = newReplica(t, p.primary, p.link, settings...)
	return p
}

// proxy starts a proxy that is closed at the end of the test.
func proxy(t testing.TB, target string) *redisserver.Proxy {
	t.Helper()
	p, err := redisserver.NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// newReplica starts a replica of a server behind a proxy. It returns when the replica has all data
// and the primary counts the replica.
func newReplica(t testing.TB, primary *redisserver.Server, link *redisserver.Proxy, settings ...string) *redisserver.Server {
	t.Helper()
	s := ownServer(t, append([]string{"--replicaof", "127.0.0.1 " + link.Port()}, settings...)...)
	eventually(t, "the replica is connected", func(ctx context.Context) error {
		info, err := s.Do(ctx, "info", "replication")
		if text, _ := info.(string); err == nil && !strings.Contains(text, "master_link_status:up") {
			err = errors.New("not yet")
		}
		return err
	})
	eventually(t, "the primary counts the replica", func(ctx context.Context) error {
		info, err := primary.Do(ctx, "info", "replication")
		if text, _ := info.(string); err == nil && strings.Count(text, "state=online") != strings.Count(text, "state=") {
			err = errors.New("not yet")
		}
		return err
	})
	return s
}

// failOver promotes the replica, after the primary was killed or cut off, and connects the clients
// to the promoted replica.
func (p *pair) failOver(t testing.TB) {
	t.Helper()
	if _, err := p.replica.Do(context.Background(), "replicaof", "no", "one"); err != nil {
		t.Error(err)
	}
	p.front.Target(p.replica.Addr())
	p.front.Cut()
}
