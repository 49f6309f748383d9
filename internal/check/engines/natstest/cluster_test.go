package natstest

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/engines/clustertest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/session"
)

// A cluster has three servers in this process, and a bucket.
type cluster struct {
	members []*member
	routes  map[[2]int]*enginetest.Proxy // from one member to another
}

// clusters limits how many clusters run at once, because nine servers keep a small machine busy.
var clusters = make(chan struct{}, 3)

func newCluster(t testing.TB) *cluster {
	t.Helper()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	c := &cluster{routes: map[[2]int]*enginetest.Proxy{}}
	members, err := clustertest.NewMembers(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, prepared := range members {
		m := &member{Member: prepared}
		c.members = append(c.members, m)
		for j, other := range members {
			if i != j {
				p := enginetest.NewProxy(t, other.Peer, nil)
				c.routes[[2]int{i, j}] = p
				m.Routes = append(m.Routes, p.Addr())
			}
		}
	}
	clustertest.Run(t, c.members, (*member).start, (*member).stop)
	if err := makeBucket(c.members[0].url(), len(c.members)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) endpoints() (urls []string) {
	for _, m := range c.members {
		urls = append(urls, m.url())
	}
	return urls
}

const streamName = "KV_" + natslease.DefaultBucket

// leader returns the index of the member that leads the stream of the bucket.
func (c *cluster) leader(t testing.TB) (found int) {
	t.Helper()
	eventually(t, "a leader", func(context.Context) error {
		for i, m := range c.members {
			if m.server.JetStreamIsStreamLeader("$G", streamName) {
				found = i
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// cut cuts a member off from all other members, but not from its clients.
func (c *cluster) cut(i int) {
	for pair, p := range c.routes {
		if pair[0] == i || pair[1] == i {
			p.Refuse()
			p.Cut()
		}
	}
}

func (c *cluster) mend() {
	for _, p := range c.routes {
		p.Heal()
	}
}

// stepDown makes the leader of the stream step down.
func (c *cluster) stepDown(t testing.TB, js jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _ = js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+streamName, nil) // fails while there is no leader
}

// With the bucket on three servers, the leader of the stream is stopped. The lease is not lost if a new
// leader is elected before it ends.
func TestStoppedLeaderIsNoLoss(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	leader := c.leader(t)
	endpoint, stopped := c.members[(leader+1)%3].url(), c.members[leader]
	holder, err := store(t, client(t, endpoint), nil).Lease("x", &session.Options{Duration: 20 * time.Second, RenewInterval: 200 * time.Millisecond, RequestTimeout: 2 * time.Second, RetryDelay: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Outlives(t, holder, stopped.stop, stopped.start)
}

// A holder at a leader that is cut off stops believing that it holds the lease. Only then does a
// contender at the majority take over, with a newer token. SPEC S8: for a while, the old leader still
// answers as the leader. Its answers are stale, and no load returns them.
func TestCutLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	old := c.leader(t)
	js := client(t, c.members[old].url())
	s := store(t, js, nil)
	holder, err := s.Lease("x", &session.Options{Duration: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	before, err := session.AcquireWait(t.Context(), holder, nil)
	if err != nil {
		t.Fatal(err)
	}
	contender, err := store(t, client(t, c.members[(old+1)%3].url()), nil).Lease("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer contender.Close(context.Background())
	if ok, err := contender.Acquire(t.Context()); ok || err != nil { // its first read
		t.Fatal(ok, err)
	}
	c.cut(old)
	defer c.mend()
	after, err := session.AcquireWait(t.Context(), contender, nil)
	if err != nil {
		t.Fatal(err)
	}
	if holder.CheckAlive() {
		t.Error("two holders believe")
	}
	if after.Compare(before) <= 0 {
		t.Errorf("token %s after %s", after, before)
	}
	if snap, err := s.Load(within(t, 2*time.Second), "x"); err == nil {
		t.Errorf("loaded from a leader that is cut off: %v", snap.Record)
	}
}

// A client is connected to a leader that is cut off from the other servers, and lives on. Only new
// connections reach the majority. The Store makes the client connect again as soon as the majority has
// a leader, which takes 4 to 9 s, and the watch works there, too.
func TestLeavesACutOffServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	old := c.leader(t)
	p := enginetest.NewProxy(t, c.members[old].Client, nil)
	s := store(t, client(t, "nats://"+p.Addr()), nil)
	defer c.mend()
	clustertest.LeavesAServer(t, s, p, c.members[(old+1)%3].Client, func() { c.cut(old) }, 20*time.Second)
}

// SPEC S8: any replica can answer a direct read, and the answer of one that lags behind is stale. A
// store that gets such answers rejects them, and works again when the replica has caught up.
func TestDirectReadFromALaggingReplica(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lagging := (c.leader(t) + 1) % 3
	majority := client(t, c.members[(lagging+1)%3].url())
	a := store(t, majority, nil).Authority()
	before := do(t, a, "x", acquire(idA, time.Hour), 0)
	replica := client(t, c.members[lagging].url())
	direct := func() (*nats.Msg, error) {
		return replica.Conn().Request("$JS.API.DIRECT.GET."+streamName+".$KV.leases.x", nil, time.Second)
	}
	misled(t, majority, direct)
	js, err := jetstream.NewWithAPIPrefix(client(t, c.members[(lagging+1)%3].url()).Conn(), "MISLED")
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, js, nil)
	if snap, err := s.Load(t.Context(), "x"); err != nil || snap.Record.ID != idA {
		t.Fatalf("before anything is stale: %v, %v", snap.Record, err)
	}

	defer c.mend()
	eventually(t, "an answer of the replica alone", func(context.Context) error {
		c.cut(lagging)
		_, err := direct()
		if err != nil { // a replica begins to answer some time after its start
			c.mend()
			time.Sleep(300 * time.Millisecond) // a real engine
		}
		return err
	})
	eventually(t, "a grant by the majority", func(ctx context.Context) error {
		_, err := a.Do(ctx, "x", release(idA))
		return err
	})
	do(t, a, "x", acquire(idB, time.Hour), 0)
	m, err := direct()
	if err != nil || !strings.Contains(string(m.Data), before.Record.ID.String()) {
		t.Fatalf("the replica is not behind: %v, %v", m, err)
	}
	if snap, err := s.Load(soon(t), "x"); err == nil {
		t.Errorf("a stale answer was believed: %v", snap.Record)
	} else {
		says(t, err, context.DeadlineExceeded, "not current")
	}
	for e, err := range s.List(soon(t), "") {
		if err == nil {
			t.Errorf("a stale answer was listed: %v", e)
		}
	}
	if _, err := s.Authority().Do(soon(t), "x", acquire(idB, time.Minute)); err == nil || lease.CodeOf(err).Refusal() {
		t.Errorf("an acquire was answered by %v", err)
	}
	c.mend()
	eventually(t, "a load once the replica has caught up", func(ctx context.Context) error {
		snap, err := s.Load(ctx, "x")
		if err == nil && snap.Record.ID != idB {
			t.Errorf("loaded %v", snap.Record)
		}
		return err
	})
}

// misled serves the API of JetStream under another prefix, and answers each read with the result of direct.
func misled(t *testing.T, js jetstream.JetStream, direct func() (*nats.Msg, error)) {
	t.Helper()
	relay(t, js, "MISLED.", func(subject string, m *nats.Msg) bool {
		if !strings.HasPrefix(subject, "STREAM.MSG.GET.") {
			return false
		}
		read, err := direct()
		if err != nil {
			return true
		}
		sequence, _ := strconv.ParseUint(read.Header.Get("Nats-Sequence"), 10, 64)
		answer, err := json.Marshal(map[string]any{"message": map[string]any{
			"seq": sequence, "data": read.Data, "hdrs": []byte("NATS/1.0\r\nLease-Writer: " + read.Header.Get("Lease-Writer") + "\r\n\r\n"),
		}})
		if err != nil {
			t.Error(err)
		}
		_ = m.Respond(answer) // fails if the test has ended
		return true
	})
}

// relay serves the API of JetStream under another prefix. It passes on each message for which handle
// returns false.
func relay(t *testing.T, js jetstream.JetStream, prefix string, handle func(subject string, m *nats.Msg) bool) {
	t.Helper()
	nc := js.Conn()
	sub, err := nc.Subscribe(prefix+">", func(m *nats.Msg) {
		subject := strings.TrimPrefix(m.Subject, prefix)
		if handle(subject, m) {
			return
		}
		if !strings.HasPrefix(subject, "$KV.") {
			subject = "$JS.API." + subject
		}
		_ = nc.PublishMsg(&nats.Msg{Subject: subject, Reply: m.Reply, Header: m.Header, Data: m.Data})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
}

// SPEC S7: if the server of the consumer of a watch stops, the watch is lost. A new one then works, and
// sends a signal for a release.
func TestWatchIsLostWithItsServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	endpoint := c.members[0]
	s := store(t, client(t, endpoint.url()), nil)
	do(t, s.Authority(), "x", acquire(idA, time.Hour), 0)
	var signals [12]<-chan struct{}
	for i := range signals { // the consumer can be on any of the servers
		var err error
		if signals[i], err = s.Watch(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	c.members[1].stop()
	defer func() {
		if err := c.members[1].start(); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "a renewal", func(ctx context.Context) error {
		_, err := s.Authority().Do(ctx, "x", renew(idA))
		return err
	})
	for i := range signals { // the renewal, or the loss
		select {
		case <-signals[i]:
		case <-time.After(15 * time.Second):
			t.Fatalf("watch %d: neither a signal nor a loss", i)
		}
	}
	again, err := s.Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	do(t, s.Authority(), "x", release(idA), 0)
	if !shorthand.Within(again, true) {
		t.Error("the new watch is lost too, or silent")
	}
}
