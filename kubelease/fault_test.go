package kubelease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/session"
)

// harm injects a random fault into an API server, and returns the name of the fault.
func harm(t *testing.T, r *rand.Rand, server *kubeserver.Server, p *enginetest.Proxy) string {
	t.Helper()
	pause := func(p *processes.Process) {
		if err := p.Pause(time.Duration(100+r.IntN(700)) * time.Millisecond); err != nil {
			t.Error(err)
		}
	}
	switch r.IntN(12) {
	case 0:
		server.API.Kill()
		if err := server.StartAPI(t.Context()); err != nil {
			t.Error(err)
		}
		return "API server killed and restarted"
	case 1, 2, 3:
		pause(server.API)
		return "API server stopped and continued"
	case 4, 5, 6:
		pause(server.Etcd)
		return "etcd stopped and continued"
	case 7, 8:
		p.Silence()
		return "connections die without a sign"
	case 9:
		if err := server.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		return "etcd compacted"
	}
	p.Cut()
	return "connections cut"
}

// A holder keeps its lease of half a minute although its connections die silently, because a client
// with the settings of ClientConfig opens new ones.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Address, nil)
	s, err := store(t, client(t, p.Addr()), nil).Lease(objectOf(t), &session.Options{Duration: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	mustAcquire(t, s)
	lost := make(chan error, 1)
	defer s.OnLost(func(err error) { lost <- err })()
	p.Silence()
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

// If its watch dies silently, a contender waits until the lease that it has read is over, but not longer.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	p := enginetest.NewProxy(t, shared.Address, nil)
	name := objectOf(t)
	holder := newStore(t).Authority()
	do(t, holder, name, acquire(idA, 5*time.Second), 0)
	waiter, err := store(t, client(t, p.Addr()), nil).Lease(name, &session.Options{Duration: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close(context.Background())
	held := acquireWait(t, waiter)
	time.Sleep(time.Second) // until the contender watches
	p.Silence()
	do(t, holder, name, release(idA), 0)
	released := time.Now()
	t.Logf("acquired %v after a release that was not signalled", await(t, "we hold", held).Sub(released))
}

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	enginetest.GraceWithAWatch(t, newStore(t), newStore(t).Authority(), objectOf(t))
}
