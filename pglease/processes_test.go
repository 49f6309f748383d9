package pglease_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/pglease"
)

// openStore makes the store of a process that holds a lease.
func openStore(url string) (processes.Store, error) {
	p, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return nil, err
	}
	return pglease.New(p, nil)
}

// SPEC G1, G2, H9: the server is paused and resumed, killed and started again, and connections are
// cut, while holders are paused, resumed and killed. No stale write passes the guard, and no holder
// believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	server := ownServer(t)
	url := server.URL(server.Database(t))
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: []string{url, url, url}, Duration: time.Second}, rounds,
		func(r *rand.Rand) string { return harm(server, t, r) })
}
