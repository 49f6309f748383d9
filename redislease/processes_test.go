package redislease_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
)

// openStore makes the store of a process that holds a lease.
func openStore(addr string) (processes.Store, error) {
	return redislease.New(redis.NewClient(&redis.Options{Addr: addr}), nil)
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections are
// cut or die silently, while holders are paused, resumed and killed. No stale write passes the
// guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	server := ownServer(t, redisserver.Durable...)
	front := proxy(t, server.Addr())
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: []string{front.Addr(), front.Addr(), front.Addr()}, Duration: time.Second}, rounds,
		func(r *rand.Rand) string { return harm(t, server, front, r) })
}
