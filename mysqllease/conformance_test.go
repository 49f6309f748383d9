package mysqllease_test

import (
	"context"
	"database/sql/driver"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest"
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
		Connect: func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
			s, err := mysqllease.Over(shared.config(database), func(c driver.Conn) driver.Conn { return linked{c, transmit} })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	}.Run(t, names...)
}

// A linked connection sends its statements through transmit. An error of the database is an answer.
type linked struct {
	driver.Conn
	transmit leasetest.Transmit
}

func (c linked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	lost := c.transmit(ctx, func() error {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return nil
	})
	if lost != nil && rows != nil {
		rows.Close()
	}
	if lost != nil {
		return nil, lost
	}
	return rows, err
}

// checkHistories checks histories of four clients.
func checkHistories(t *testing.T, url string, runs int, w linearize.Workload, harm func(*rand.Rand) string) {
	clients := enginetest.Clients(4, func(int) enginetest.Store { return opened(t, url) })
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, name
		return linearize.Run(t.Context(), clients, &linearize.Options{Observed: true, Epsilon: 100 * time.Microsecond}, &w)
	}, harm)
}

// SPEC A2: every history is linearizable in the time of the server.
func TestHistories(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 100
	}
	checkHistories(t, shared.url(shared.database(t)), runs, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, nil)
}

func opened(t testing.TB, url string) enginetest.Store {
	s, err := openStore(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.(io.Closer).Close() })
	return s.(enginetest.Store)
}

// openStore makes the store of a process that holds a lease.
func openStore(url string) (processes.Store, error) {
	c, err := mysqllease.ConfigOf(url)
	if err != nil {
		return nil, err
	}
	return mysqllease.New(c, nil)
}
