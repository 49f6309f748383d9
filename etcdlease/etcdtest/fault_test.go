package etcdtest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/session"
)

// harmServer injects a random fault into a server, and returns the name of the fault.
func harmServer(t *testing.T, r *rand.Rand, server *child, p *proxy) string {
	t.Helper()
	switch r.IntN(3) {
	case 0:
		server.pause(t, time.Duration(100+r.IntN(400))*time.Millisecond)
		return "stop and continue"
	case 1:
		server.Kill()
		server.start(t)
		return "kill and restart"
	}
	p.cut()
	return "cut connections"
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

func endpoints(members []*member) (urls []string) {
	for _, m := range members {
		urls = append(urls, m.Client)
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

// A holder at a member that is cut off stops believing that it holds the lease. Only then does a
// contender at the majority take over, with a newer token.
func TestCutHolder(t *testing.T) {
	t.Parallel()
	members := newCluster(t)
	minority := members[0]
	holder, err := store(t, client(t, minority.Client), nil).Lease("x", &session.Options{Duration: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	before, err := session.AcquireWait(t.Context(), holder, nil)
	if err != nil {
		t.Fatal(err)
	}
	contender, err := store(t, client(t, members[1].Client), nil).Lease("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer contender.Close(context.Background())
	if ok, err := contender.Acquire(t.Context()); ok || err != nil { // its first read
		t.Fatal(ok, err)
	}
	cut(minority, members)
	defer mend(minority, members)
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

// The server can still apply a write that timed out. A holder that asks again finds out whether it
// was applied.
func TestTimedOutWriteIsApplied(t *testing.T) {
	server := newChild(t)
	a := store(t, client(t, server.Client), nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := a.Do(ctx, "x", renew(idA)); lease.CodeOf(err) != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer that does not come: %v", err)
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "renewal", func(ctx context.Context) error {
		_, err := a.Do(ctx, "x", renew(idA))
		return err
	})
}

// A proxy passes connections on to a server, and can cut them.
type proxy struct {
	url string

	to      atomic.Pointer[string] // where new connections go
	refuses atomic.Bool            // new connections are closed at once

	mu    sync.Mutex
	conns map[net.Conn]*atomic.Bool // true: the proxy drops the data that arrives
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + l.Addr().String(), conns: map[net.Conn]*atomic.Bool{}}
	p.to.Store(&to)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(*p.to.Load(), "http://"))
			if err != nil || p.refuses.Load() {
				in.Close()
				if out != nil {
					out.Close()
				}
				continue
			}
			dead := new(atomic.Bool)
			p.mu.Lock()
			p.conns[in], p.conns[out] = dead, dead
			p.mu.Unlock()
			pass := func(from, to net.Conn) {
				_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
					if dead.Load() {
						return len(b), nil
					}
					return to.Write(b)
				}), from)
				from.Close()
				to.Close()
			}
			all.Go(func() { pass(in, out) })
			all.Go(func() { pass(out, in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		all.Wait()
	})
	return p
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

// silence lets all connections die silently. New connections work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dead := range p.conns {
		dead.Store(true)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A store leaves a connection that has died silently after one request. Until then, it logs a warning.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	p := newProxy(t, shared.Client)
	var said logged
	a := store(t, client(t, p.url), &etcdlease.Options{SilenceWarning: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&said, nil))}).Authority()
	do(t, a, t.Name(), acquire(idA, time.Hour), 0)
	p.silence()
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
	if text := said.String(); strings.Count(text, "etcd does not answer") != 1 || !strings.Contains(text, p.url) || !strings.Contains(text, "DialKeepAliveTime") {
		t.Errorf("the store said %q", text)
	}
}

// When etcd can be reached again, a client with the settings of ClientConfig recovers within two
// seconds.
func TestRecoveryAfterCuts(t *testing.T) {
	t.Parallel()
	p := newProxy(t, shared.Client)
	a := store(t, client(t, p.url), nil).Authority()
	do(t, a, t.Name(), acquire(idA, time.Hour), 0)
	p.refuses.Store(true)
	p.cut()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := a.Do(ctx, t.Name(), renew(idA)); err == nil {
			t.Error("renewed while nothing gets through")
		}
		cancel()
	}
	p.refuses.Store(false)
	began := time.Now()
	eventually(t, "a renewal", func(ctx context.Context) error {
		_, err := a.Do(ctx, t.Name(), renew(idA))
		return err
	})
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("recovered after %v", took)
	} else {
		t.Logf("recovered after %v", took)
	}
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
