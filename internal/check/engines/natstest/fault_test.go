package natstest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// underFaults calls f with a server that fails, and with a cluster of three members that fail. The number of histories
// under the faults of a cluster is lower, because they take longer.
func underFaults(t *testing.T, f func(t *testing.T, target enginetest.Target, histories int)) {
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		f(t, enginetest.UnderFaults(t, newChild(t), func(addr string) string { return "nats://" + addr }), 1000)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		js := client(t, strings.Join(c.endpoints(), ","))
		f(t, enginetest.Target{Endpoints: c.endpoints(), Harm: func(r *rand.Rand) string { return harmCluster(t, r, c, js) }}, 400)
	})
}

// harmCluster injects a random fault into a cluster, and returns the name of the fault.
func harmCluster(t *testing.T, r *rand.Rand, c *cluster, js jetstream.JetStream) string {
	t.Helper()
	leader := c.leader(t)
	short := time.Duration(300+r.IntN(700)) * time.Millisecond
	cut := func(member int, d time.Duration) {
		c.cut(member)
		time.Sleep(d) // a real engine
		c.mend()
	}
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
		cut((leader+1+r.IntN(2))%3, short)
		return "follower that is cut off"
	case n < 19:
		cut(leader, short)
		return "leader that is cut off for a moment"
	}
	cut(leader, 10*time.Second) // there is another leader before the end of it
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
	clustertest.LeavesAServer(t, s, p, shared.Client, p.Silence, 2*time.Second)
}
