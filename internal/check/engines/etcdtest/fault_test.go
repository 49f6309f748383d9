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
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// underFaults starts a server that fails.
func underFaults(t *testing.T) enginetest.Target {
	return enginetest.UnderFaults(t, newChild(t), storeURL)
}

// clusterUnderFaults starts a cluster whose members fail.
func clusterUnderFaults(t *testing.T) enginetest.Target {
	members := newCluster(t)
	return enginetest.Target{Endpoints: storeURLs(members), Harm: func(r *rand.Rand) string { return harmCluster(t, r, members) }}
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

func storeURLs(members []*member) (urls []string) {
	for _, m := range members {
		urls = append(urls, storeURL(m.Client))
	}
	return urls
}

func newCluster(t *testing.T) []*member {
	t.Helper()
	members, err := newMembers(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			if err := m.start(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, m := range members {
			all.Go(m.stop)
		}
		all.Wait()
	})
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
	crashed := leader(t, members)
	var endpoint string
	for _, m := range members {
		if m != crashed {
			endpoint = m.Client
		}
	}
	holder, err := store(t, client(t, endpoint), nil).Lease("x", &session.Options{Duration: 4 * time.Second, RenewInterval: 200 * time.Millisecond, RequestTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := session.AcquireWait(t.Context(), holder, nil); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	defer holder.OnLost(func(err error) { lost <- err })()
	crashed.crash()
	select {
	case err := <-lost:
		t.Error(err)
	case <-time.After(5 * time.Second):
	}
	if err := crashed.start(); err != nil {
		t.Fatal(err)
	}
}

// A store leaves a connection that has died silently after one request. Until then, it logs a warning.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	var said logged
	a := store(t, client(t, p.Addr()), &etcdlease.Options{SilenceWarning: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&said, nil))}).Authority()
	do(t, a, t.Name(), acquire(idA, time.Hour), 0)
	p.Silence()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := a.Do(ctx, t.Name(), renew(idA)); err == nil {
		t.Error("renewed over a silent connection")
	}
	began := time.Now()
	eventually(t, "a renewal over another connection", func(ctx context.Context) error {
		_, err := a.Do(ctx, t.Name(), renew(idA))
		return err
	})
	if took := time.Since(began); took > 5*time.Second { // keepalive would need 13 s
		t.Errorf("recovered only after %v", took)
	} else {
		t.Logf("recovered after %v", took)
	}
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
