package natstest

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// underFaults starts a server that fails.
func underFaults(t *testing.T) enginetest.Target {
	return enginetest.UnderFaults(t, newChild(t), func(addr string) string { return "nats://" + addr })
}

// clusterUnderFaults starts a cluster whose members fail.
func clusterUnderFaults(t *testing.T) enginetest.Target {
	c := newCluster(t, 3)
	js := client(t, strings.Join(c.endpoints(), ","))
	return enginetest.Target{Endpoints: c.four(), Harm: func(r *rand.Rand) string { return harmCluster(t, r, c, js) }}
}

// harmCluster injects a random fault into a cluster, and returns the name of the fault.
func harmCluster(t *testing.T, r *rand.Rand, c *cluster, js jetstream.JetStream) string {
	t.Helper()
	leader := c.leader(t)
	short := time.Duration(300+r.IntN(700)) * time.Millisecond
	switch n := r.IntN(20); {
	case n < 6:
		c.members[leader].stop()
		time.Sleep(short) // a real engine
		if err := c.members[leader].start(); err != nil {
			t.Error(err)
		}
		return "stopped leader"
	case n < 12:
		c.stepDown(t, js)
		return "leader that steps down"
	case n < 16:
		c.cut((leader + 1 + r.IntN(2)) % 3)
		time.Sleep(short) // a real engine
		c.mend()
		return "follower that is cut off"
	case n < 19:
		c.cut(leader)
		time.Sleep(short) // a real engine
		c.mend()
		return "leader that is cut off for a moment"
	}
	c.cut(leader)
	time.Sleep(10 * time.Second) // a real engine: there is another leader before the end of it
	c.mend()
	return "leader that is cut off and lost"
}

// When NATS can be reached again, a client with ConnectOptions recovers within two seconds.
func TestRecoveryAfterCuts(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	a := store(t, client(t, "nats://"+p.Addr()), nil).Authority()
	enginetest.RecoversAfterCuts(t, p, a, t.Name(), 2*time.Second)
}

// SPEC S7: if the connection of a watch dies silently, the watch is lost within seconds.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	s := store(t, client(t, "nats://"+p.Addr()), nil)
	signals, err := s.Watch(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	p.Silence()
	if !shorthand.Within(signals, false) {
		t.Error("not lost")
	}
}

// A Store leaves a server that answers nothing: after one request that fails, the next ones use a new
// connection, and so does the watch, long before the pings of the client find out.
func TestLeavesASilentServer(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Client, nil)
	s := store(t, client(t, "nats://"+p.Addr()), nil)
	a := s.Authority()
	do(t, a, t.Name(), acquire(idA, time.Minute), 0)
	signals, err := s.Watch(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	p.Silence()
	const requestTimeout = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	if _, err := a.Do(ctx, t.Name(), renew(idA)); err == nil {
		t.Fatal("a renewal succeeds over a silent connection")
	}
	began := time.Now()
	eventually(t, "a renewal over another connection", func(ctx context.Context) error {
		_, err := a.Do(ctx, t.Name(), renew(idA))
		return err
	})
	if took := time.Since(began); took > requestTimeout {
		t.Errorf("recovered only after %v", took)
	}
	select {
	case <-signals: // the renewal, or the end of the watch, after which a holder watches again
	case <-time.After(6 * time.Second):
		t.Error("the watch is silent")
	}
}
