package mysqllease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
	"github.com/fencedlease/lease/mysqllease"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	names := []string{"Store", "Authority", "Lease"}
	if testing.Short() {
		names = names[:1] // authorities and holders depend little on the store
	}
	database := shared.database(t)
	o := leasetest.Options{
		Unit:  500 * time.Millisecond,
		Can:   leasetest.Everything,
		Lacks: []string{"CanServeOldVersions", "Options.Store.Forget", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts a minute
	}
	enginetest.Suites{Options: o,
		Open: func(t testing.TB) enginetest.Store { return shared.store(t, database, nil) },
		Corrupt: func(t testing.TB, name string) {
			shared.exec(t, database, "update lease_row set id = '' where name = ?", []byte(name))
		},
		Connect: overLink(database),
	}.Run(t, names...)
}

// overLink returns a function that opens a store whose queries go through a function.
func overLink(database string) func(testing.TB, leasetest.Transmit) enginetest.Store {
	return func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
		connector, err := mysqllease.NewConnector("", shared.config(database))
		if err != nil {
			t.Fatal(err)
		}
		s, err := mysqllease.NewStore(linked.Connector(transmit, connector), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// checkHistories checks histories in the time of the server.
func checkHistories(t *testing.T, target enginetest.Target, runs int) {
	linearize.TestHistories(t, target, nil, &linearize.TestOptions{Runs: runs, Options: linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}})
}

// SPEC A2: every history is linearizable.
func TestHistories(t *testing.T) {
	checkHistories(t, enginetest.At(url(shared.Addr(), shared.database(t)), 4), 2000)
}

// underFaults starts a server with a database that fails.
func underFaults(t *testing.T) enginetest.Target {
	s := ownServer(t)
	database := s.database(t)
	return enginetest.UnderFaults(t, s, func(addr string) string { return url(addr, database) })
}

// Histories are linearizable while connections fail, and while the server is killed and stands still.
func TestHistoriesUnderFaults(t *testing.T) { checkHistories(t, underFaults(t), 300) }

// SPEC G1, G2, H9: under the same faults, while holders are paused, resumed and killed, no stale write passes the
// guard, and no holder believes that it holds the lease while another holder has it.
func TestHoldersAtAServerUnderFaults(t *testing.T) { enginetest.TestHolders(t, underFaults(t), nil) }
