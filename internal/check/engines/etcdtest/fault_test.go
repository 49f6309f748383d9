package etcdtest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// underFaults calls f with a server that fails, and with a cluster of three members that fail. The number of histories
// under the faults of a cluster is lower, because they take longer.
func underFaults(t *testing.T, f func(t *testing.T, target enginetest.Target, histories int)) {
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		f(t, enginetest.UnderFaults(t, newChild(t), storeURL), 1000)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		members := newCluster(t)
		target := enginetest.Target{Harm: func(r *rand.Rand) string { return harmCluster(t, r, members) }}
		for _, m := range members {
			target.Endpoints = append(target.Endpoints, storeURL(m.Client))
		}
		f(t, target, 400)
	})
}

// harmCluster injects a random fault into a cluster, and returns the name of the fault.
func harmCluster(t *testing.T, r *rand.Rand, members []*member) string {
	t.Helper()
	if r.IntN(2) == 0 {
		m := leader(t, members)
		m.crash()
		time.Sleep(time.Duration(300+r.IntN(300)) * time.Millisecond) // a real engine
		if err := m.start(); err != nil {
			t.Error(err)
		}
		return "crash of the leader"
	}
	m := members[r.IntN(len(members))]
	cut(m, members)
	time.Sleep(time.Duration(300+r.IntN(300)) * time.Millisecond) // a real engine
	mend(m, members)
	return "cut member"
}

// storeURL returns the URL with which open.Store opens the store at an address.
func storeURL(address string) string { return "etcd://" + address }

func newCluster(t *testing.T) []*member {
	t.Helper()
	members, err := newMembers(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Run(t, members, (*member).start, (*member).stop)
	return members
}

func leader(t *testing.T, members []*member) (found *member) {
	t.Helper()
	eventually(t, "a leader", func(context.Context) error {
		for _, m := range members {
			if m.etcd.Server.Leader() == m.etcd.Server.MemberID() {
				found = m
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

func cut(m *member, members []*member) {
	for _, other := range members {
		if other != m {
			m.etcd.Server.CutPeer(other.etcd.Server.MemberID())
			other.etcd.Server.CutPeer(m.etcd.Server.MemberID())
		}
	}
}

func mend(m *member, members []*member) {
	for _, other := range members {
		if other != m {
			m.etcd.Server.MendPeer(other.etcd.Server.MemberID())
			other.etcd.Server.MendPeer(m.etcd.Server.MemberID())
		}
	}
}

// If the leader of etcd is down for less time than the lease lasts, the lease is not lost.
func TestLeaderCrashIsNoLoss(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	crashed, other := leader(t, members), members[0]
	if other == crashed {
		other = members[1]
	}
	holder, err := store(t, client(t, other.Client), nil).Lease("x", &session.Options{Duration: 4 * time.Second, RenewInterval: 200 * time.Millisecond, RequestTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Outlives(t, holder, crashed.crash, crashed.start)
}

// A store leaves a connection that has died silently. Until then, it logs a warning.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	var said logged
	s := store(t, client(t, p.Addr()), &etcdlease.Options{SilenceWarning: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	clustertest.LeavesAServer(t, s, p, shared.Client, p.Silence, 4*time.Second)
	if text := said.String(); strings.Count(text, "etcd does not answer") != 1 || !strings.Contains(text, p.Addr()) || !strings.Contains(text, "DialKeepAliveTime") {
		t.Errorf("the store said %q", text)
	}
}

// When etcd can be reached again, a client with the settings of ClientConfig recovers within two seconds.
func TestRecoveryAfterCuts(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	a := store(t, client(t, p.Addr()), nil).Authority()
	enginetest.RecoversAfterCuts(t, p, a, t.Name(), 2*time.Second)
}

// logged holds the log records.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
