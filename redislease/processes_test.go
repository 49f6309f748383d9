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

// openStore makes the store of a process that holds.
func openStore(addr string) (processes.Store, error) {
	return redislease.New(redis.NewClient(&redis.Options{Addr: addr}), nil)
}

// SPEC G1, G2, H9: the server is stopped and continued, killed and started again, and connections are
// cut and die silently, while holders are stopped, continued and killed: no stale write passes the
// guard, and no holder believes while another holds.
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
