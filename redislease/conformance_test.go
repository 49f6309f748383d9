package redislease_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
)

// unit is the one of the suites. It bears stalls of half a second, as a busy machine has them, since a
// Session gives a request that long. The gate has less time, and takes a shorter one.
func unit() time.Duration {
	if testing.Short() {
		return 250 * time.Millisecond
	}
	return 400 * time.Millisecond
}

func TestConformance(t *testing.T) {
	t.Parallel()
	c := client(t, shared.Addr(), func(o *redis.Options) { o.PoolSize = 64 }) // as many as run at once
	suite(t, c, redislease.Options{})
}

// stores makes the stores of a suite. Each rule has a prefix of its own, and with it floors.
type stores struct {
	client   redis.UniversalClient
	options  redislease.Options
	prefixes sync.Map // of the stores
}

func (m *stores) make(t testing.TB) *redislease.Store { return m.at(t, prefix(t)) }

func (m *stores) at(t testing.TB, prefix string) *redislease.Store {
	o := m.options
	o.Prefix, o.Keep = prefix, keep(t)
	s := store(t, m.client, &o)
	if _, err := s.Load(t.Context(), "connect, before time counts"); err != nil {
		t.Error(err)
	}
	m.prefixes.Store(s, prefix)
	return s
}

// prefixOf returns the prefix of a store.
func (m *stores) prefixOf(s lease.Store) string {
	prefix, _ := m.prefixes.Load(s)
	return prefix.(string)
}

// keeps is how long the stores of some rules keep records: of the one that waits for half of that time,
// and of those that look at names of other buckets after a record has expired by itself. The stores of
// all other rules have the default.
var keeps = map[string]time.Duration{
	"S9/what-may-be-renewed-is-kept-for-the-stated-time": 20 * time.Second,
	"S3/epoch-outlives-forgetting":                       2 * time.Second,
	"S3/the-highest-forgotten-epoch-counts":              2 * time.Second,
	"S3/forgotten-epochs-outlive-reopening":              2 * time.Second,
}

// keep returns how long the stores of a rule keep records.
func keep(t testing.TB) time.Duration {
	for rule, d := range keeps {
		if strings.HasSuffix(t.Name(), rule) {
			return d
		}
	}
	return time.Hour
}

// forget has the server forget what was released: at once, unless that is soon anyway. The rest it
// forgets in its time.
func (m *stores) forget(t testing.TB, s lease.Store) (after time.Duration) {
	after = keep(t)
	for e, err := range s.(*redislease.Store).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if soon := after < 5*time.Second; e.Record.State != lease.Available && (!soon || e.Record.State.Locked()) {
			continue
		}
		key := s.(*redislease.Store).Key(e.Name)
		if after > 5*time.Second {
			m.client.PExpire(t.Context(), key, time.Millisecond)
		}
		for m.client.Exists(t.Context(), key).Val() != 0 {
			time.Sleep(10 * time.Millisecond) // a real engine
		}
	}
	return after
}

// suiteOptions are those of the suites.
func (m *stores) suiteOptions() *leasetest.Options {
	again := func(t testing.TB, s lease.Store) lease.Store { return m.at(t, m.prefixOf(s)) }
	// An authority that remembers the record notices the change by its version.
	corrupt := func(t testing.TB, s *redislease.Store, name string) {
		if err := m.client.HSet(t.Context(), s.Key(name), "id", "", "version", "edited").Err(); err != nil {
			t.Fatal(err)
		}
	}
	return &leasetest.Options{
		Unit: unit(), Slack: 400 * time.Millisecond,
		Reopen: func(t testing.TB, s lease.Store) lease.Store {
			s.(*redislease.Store).Close()
			return again(t, s)
		},
		Another: again,
		// The prefix is that of the rule, so that these have the same data.
		ReopenAuthority:  func(t testing.TB, _ lease.Authority) lease.Authority { return m.make(t).Authority() },
		AnotherAuthority: func(t testing.TB, _ lease.Authority) lease.Authority { return m.make(t).Authority() },
		Forget:           m.forget,
		Corrupt:          func(t testing.TB, s lease.Store, name string) { corrupt(t, s.(*redislease.Store), name) },
		CorruptAuthority: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, m.make(t), name) },
		Authority:        func(t testing.TB) lease.Authority { return m.make(t).Authority() },
	}
}

// suite runs all suites. The suite of leases has a rule of 300 units, and is not run in the gate.
func suite(t *testing.T, c redis.UniversalClient, options redislease.Options) {
	m := &stores{client: c, options: options}
	suites := map[string]func(t *testing.T){
		"Store": func(t *testing.T) {
			leasetest.TestStore(t, func(t testing.TB) lease.Store { return m.make(t) }, m.suiteOptions())
		},
		"Authority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return m.make(t).Authority() }, m.suiteOptions())
		},
	}
	if !testing.Short() {
		suites["Lease"] = func(t *testing.T) { leasetest.TestLease(t, newLease, m.suiteOptions()) }
	}
	for what, test := range suites {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// newLease makes a holder of the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Authority, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}
