package kubelease_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
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

func TestGraceWithAWatch(t *testing.T) {
	t.Parallel()
	enginetest.GraceWithAWatch(t, newStore(t), newStore(t).Authority(), objectOf(t))
}
