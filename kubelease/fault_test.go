package kubelease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// underFaults starts an API server that fails, and connections to it that fail.
func underFaults(t *testing.T) enginetest.Target {
	server := newServer(t)
	p := enginetest.NewProxy(t, server.Address, nil)
	pause := func(p *enginetest.Program, r *rand.Rand) {
		if err := p.Pause(time.Duration(100+r.IntN(700)) * time.Millisecond); err != nil {
			t.Error(err)
		}
	}
	return enginetest.Target{Endpoints: []string{p.Addr(), p.Addr(), server.Address, server.Address}, Harm: func(r *rand.Rand) string {
		switch r.IntN(12) {
		case 0:
			server.API.Kill()
			if err := server.API.Start(); err != nil {
				t.Error(err)
			}
			return "API server killed and started again"
		case 1, 2, 3:
			pause(server.API, r)
			return "API server paused"
		case 4, 5, 6:
			pause(server.Etcd, r)
			return "etcd paused"
		case 7:
			if err := server.Compact(t.Context()); err != nil {
				t.Error(err)
			}
			return "etcd compacted"
		}
		return p.Harm(r)
	}}
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
