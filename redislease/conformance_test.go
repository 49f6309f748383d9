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

// unit returns the Unit of the suites. It allows stalls of half a second, as on a busy machine,
// because a Session waits that long for an answer. With -short, the unit is shorter.
func unit() time.Duration {
	if testing.Short() {
		return 250 * time.Millisecond
	}
	return 400 * time.Millisecond
}

func TestConformance(t *testing.T) {
	t.Parallel()
	c := client(t, shared.Addr(), func(o *redis.Options) { o.PoolSize = 64 }) // enough for all tests at once
	suite(t, c, redislease.Options{})
}

// stores makes the stores of a suite. Each test of the suite has its own prefix, and therefore its
// own floors.
type stores struct {
	client   redis.UniversalClient
	options  redislease.Options
	prefixes sync.Map // the prefix of each store
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

// keeps has the values of Options.Keep for two tests of the suite. One of them waits for half of that
// time. The other looks at names in other buckets after a record has expired. All other tests use the
// default.
var keeps = map[string]time.Duration{
	"S9/what-may-be-renewed-is-kept-for-the-stated-time": 20 * time.Second,
	"S3/each-forgotten-state-raises-the-epoch":           2 * time.Second,
}

// keep returns the value of Options.Keep for a test of the suite.
func keep(t testing.TB) time.Duration {
	for rule, d := range keeps {
		if strings.HasSuffix(t.Name(), rule) {
			return d
		}
	}
	return time.Hour
}

// forget makes the server forget all released records. If the records expire soon anyway, it waits
// until they have expired.
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

// suiteOptions returns the options of the suites.
func (m *stores) suiteOptions() *leasetest.Options {
	again := func(t testing.TB, s lease.Store) lease.Store { return m.at(t, m.prefixOf(s)) }
	// If an authority remembers the record, it notices the change, because the version has changed,
	// too.
	corrupt := func(t testing.TB, s *redislease.Store, name string) {
		if err := m.client.HSet(t.Context(), s.Key(name), "id", "", "version", "edited").Err(); err != nil {
			t.Fatal(err)
		}
	}
	return &leasetest.Options{
		Unit:  unit(),
		Slack: 400 * time.Millisecond,
		Lacks: []string{"exact time", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
		Store: leasetest.StoreHooks{
			Reopen: func(t testing.TB, s lease.Store) lease.Store {
				s.(*redislease.Store).Close()
				return again(t, s)
			},
			Another: again,
			Forget:  m.forget,
			Corrupt: func(t testing.TB, s lease.Store, name string) { corrupt(t, s.(*redislease.Store), name) },
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Store { return m.connect(t, transmit) },
		},
		Authority: leasetest.AuthorityHooks{
			// All stores of a test have the same prefix, so that they have the same data.
			Reopen:  func(t testing.TB, _ lease.Authority) lease.Authority { return m.make(t).Authority() },
			Another: func(t testing.TB, _ lease.Authority) lease.Authority { return m.make(t).Authority() },
			Corrupt: func(t testing.TB, _ lease.Authority, name string) { corrupt(t, m.make(t), name) },
			Connect: func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
				return m.connect(t, transmit).Authority()
			},
		},
		Lease: leasetest.LeaseHooks{Authority: func(t testing.TB) lease.Authority { return m.make(t).Authority() }},
	}
}

// connect makes a store whose commands go through transmit.
func (m *stores) connect(t testing.TB, transmit leasetest.Transmit) *redislease.Store {
	s := m.make(t)
	s.AddHook(linked{transmit})
	return s
}

// A linked sends the commands of a client through transmit. An error of the server is an answer.
type linked struct{ transmit leasetest.Transmit }

func (linked) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l linked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) (err error) {
		lost := l.transmit(ctx, func() error {
			err = next(ctx, c)
			return nil
		})
		if lost != nil {
			c.SetErr(lost)
			return lost
		}
		return err
	}
}

func (l linked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) (err error) {
		lost := l.transmit(ctx, func() error {
			err = next(ctx, all)
			return nil
		})
		if lost == nil {
			return err
		}
		for _, c := range all {
			c.SetErr(lost)
		}
		return lost
	}
}

// suite runs all suites. With -short, it leaves out the suite of leases, because a test of that
// suite takes 300 units.
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

// newLease makes a holder for the suite.
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
