package redislease_test

import (
	"context"
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
// Session gives a request that long. The longest rule takes 300 units, so that the gate has less.
func unit() time.Duration {
	if testing.Short() {
		return 180 * time.Millisecond
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
	o.Prefix = prefix
	s := store(t, m.client, &o)
	m.prefixes.Store(s, prefix)
	return s
}

// prefixOf returns the prefix of a store.
func (m *stores) prefixOf(s lease.Store) string {
	prefix, _ := m.prefixes.Load(s)
	return prefix.(string)
}

// forget waits until the server has forgotten what was released. The rest it forgets in its time.
func (m *stores) forget(t testing.TB, s lease.Store) (after time.Duration) {
	for e, err := range s.(*redislease.Store).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		for e.Record.State == lease.Available && m.client.Exists(t.Context(), s.(*redislease.Store).Key(e.Name)).Val() != 0 {
			time.Sleep(10 * time.Millisecond) // a real engine
		}
	}
	return m.options.Keep
}

// suiteOptions are those of the suites.
func (m *stores) suiteOptions() *leasetest.Options {
	again := func(t testing.TB, s lease.Store) lease.Store { return m.at(t, m.prefixOf(s)) }
	return &leasetest.Options{
		Unit: unit(), Slack: 400 * time.Millisecond,
		Reopen: func(t testing.TB, s lease.Store) lease.Store {
			s.(*redislease.Store).Close()
			return again(t, s)
		},
		Another: again,
		Forget:  m.forget,
		Corrupt: func(t testing.TB, s lease.Store, name string) {
			if err := m.client.HSet(t.Context(), s.(*redislease.Store).Key(name), "id", "").Err(); err != nil {
				t.Fatal(err)
			}
		},
		Authority: func(t testing.TB) lease.Authority { return m.make(t).Authority() },
	}
}

// suite runs all suites. The stores of the first keep records for a short time.
func suite(t *testing.T, c redis.UniversalClient, options redislease.Options) {
	short := options
	short.Keep = 4 * unit()
	forgetful, m := &stores{client: c, options: short}, &stores{client: c, options: options}
	for what, test := range map[string]func(t *testing.T){
		"Store": func(t *testing.T) {
			leasetest.TestStore(t, func(t testing.TB) lease.Store { return forgetful.make(t) }, forgetful.suiteOptions())
		},
		"Authority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return m.make(t).Authority() }, m.suiteOptions())
		},
		"Lease": func(t *testing.T) { leasetest.TestLease(t, newLease, m.suiteOptions()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// newLease makes a holder of the suite.
func newLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Over, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
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
