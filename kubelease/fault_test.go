package kubelease_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/session"
)

// harm injects a random fault into an API server, and returns the name of the fault.
func harm(t *testing.T, r *rand.Rand, server *kubeserver.Server, p *proxy) string {
	t.Helper()
	switch r.IntN(12) {
	case 0:
		server.API.Kill()
		if err := server.StartAPI(t.Context()); err != nil {
			t.Error(err)
		}
		return "API server killed and restarted"
	case 1, 2, 3:
		pause(t, server.API, time.Duration(100+r.IntN(700))*time.Millisecond)
		return "API server stopped and continued"
	case 4, 5, 6:
		pause(t, server.Etcd, time.Duration(100+r.IntN(700))*time.Millisecond)
		return "etcd stopped and continued"
	case 7, 8:
		p.silence()
		return "connections die without a sign"
	case 9:
		if err := server.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		return "etcd compacted"
	}
	p.cut()
	return "connections cut"
}

// pause pauses a process for the time d.
func pause(t *testing.T, p *processes.Process, d time.Duration) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	time.Sleep(d) // a real engine
	if err := p.Continue(); err != nil {
		t.Error(err)
	}
}

// eventually calls f, with a time limit of one second for each call, until f succeeds.
func eventually(t testing.TB, what string, f func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// If a write times out because etcd does not answer, the API server can apply the write later, or
// never. A holder that asks again finds out, and gets a newer token in both cases, even after a
// restart of the API server. SPEC A3, S3.
func TestTimedOutWrites(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	c, name := client(t, server.Address), objectOf(t)
	a := store(t, c, nil).Authority()
	epoch := do(t, a, name, acquire(idA, time.Hour), 0).Record.Epoch
	tries, applied := 10, 0
	if testing.Short() {
		tries = 3
	}
	for range tries {
		if err := server.Etcd.Stop(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := a.Do(ctx, name, acquire(idA, time.Hour))
		cancel()
		if lease.CodeOf(err) != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an answer that does not come: %v", err)
		}
		if err := server.Etcd.Continue(); err != nil {
			t.Fatal(err)
		}
		timedOut := 0
		eventually(t, "a grant", func(ctx context.Context) error {
			timedOut++
			res, err := a.Do(ctx, name, acquire(idA, time.Hour))
			if err != nil {
				return err
			}
			if res.Record.Epoch <= epoch || res.Record.Epoch > epoch+1+uint64(timedOut) {
				t.Errorf("epoch %d after %d and %d writes that timed out", res.Record.Epoch, epoch, timedOut)
			}
			applied += int(res.Record.Epoch - epoch - 1)
			epoch = res.Record.Epoch
			return nil
		})
	}
	t.Logf("with etcd stopped %d times, %d writes that timed out were applied", tries, applied)
	server.API.Kill()
	if err := server.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a grant after the restart", func(ctx context.Context) error {
		res, err := a.Do(ctx, name, acquire(idA, time.Hour))
		if err == nil && res.Record.Epoch <= epoch {
			t.Errorf("epoch %d after %d", res.Record.Epoch, epoch)
		}
		return err
	})
}

// A holder keeps its lease of half a minute although its connections die silently, because a client
// with the settings of ClientConfig opens new connections.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	p := newProxy(t, shared.Address)
	s, err := store(t, client(t, p.address), nil).Lease(objectOf(t), &session.Options{Duration: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	mustAcquire(t, s)
	lost := make(chan error, 1)
	defer s.OnLost(func(err error) { lost <- err })()
	p.silence()
	silent := time.Now()
	select {
	case err := <-lost:
		t.Error(err)
	case <-time.After(20 * time.Second):
	}
	if confirmed, held := s.LastConfirmed(); !held || !confirmed.After(silent) {
		t.Errorf("no renewal since the connections died %v ago", time.Since(silent))
	}
}

// If its watch dies silently, a contender waits until the lease that it has read is over, but not
// longer.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	p := newProxy(t, shared.Address)
	name := objectOf(t)
	holder := newStore(t).Authority()
	do(t, holder, name, acquire(idA, 5*time.Second), 0)
	waiter, err := store(t, client(t, p.address), nil).Lease(name, &session.Options{Duration: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close(context.Background())
	held := acquireWait(t, waiter)
	time.Sleep(time.Second) // until the contender watches
	p.silence()
	do(t, holder, name, release(idA), 0)
	released := time.Now()
	t.Logf("acquired %v after a release that was not signalled", await(t, "we hold", held).Sub(released))
}

// A proxy passes connections on to a server, and can cut them.
type proxy struct {
	address string
	to      atomic.Pointer[string] // where new connections go

	mu    sync.Mutex
	conns map[net.Conn]*atomic.Bool // true: the proxy drops the data that arrives
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), conns: map[net.Conn]*atomic.Bool{}}
	p.to.Store(&to)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", *p.to.Load())
			if err != nil {
				in.Close()
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
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.conns, from)
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

// A break from another process leaves a holder that watches nearly its whole grace, even if the holder
// has not renewed for a while.
func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	holder, other, name := newStore(t), newStore(t).Authority(), objectOf(t)
	do(t, holder.Authority(), name, acquire(idA, 30*time.Second), 0)
	if _, err := holder.Watch(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second) // a real engine
	const grace = 20 * time.Second
	do(t, other, name, breaks(grace), 0)
	snap, err := holder.Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	left := snap.Record.Until.Sub(snap.Now) - snap.Uncertainty
	if left < grace-4*time.Second || left > grace { // a mark is at most 2 s old
		t.Errorf("%v of %v is left", left, grace)
	}
	t.Logf("%v of %v is left of the grace of a break 8 s after the last renewal", left.Round(time.Millisecond), grace)
}
