package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// A Store is a [lease.Store] with a method Authority.
type Store interface {
	lease.Store
	Authority() lease.Authority // the authority that the store recommends, such as that of lease.NewAuthority
}

// Suites runs the conformance suites for a store. All stores that these functions make in one test must share
// the same data. Each function gets the testing.TB of the rule that calls it.
//
// With leasetest.Options.Bubble, the clocks of all bubbles start at the same time. If a store writes the
// latest time of its clock to its data, the data of one rule would be ahead of the clock of the next bubble.
// Such a store needs new data for each rule, for example in a folder that is named after t.
type Suites struct {
	// Options are the options of all suites. Run sets the hook Reopen and the hooks for the fields below.
	// Other hooks, such as Store.StepClock and Store.LoseWatches, are used as they are.
	Options leasetest.Options

	Open    func(testing.TB) Store                          // makes a store
	Another func(testing.TB) Store                          // makes a store like that of another process. Default: Open
	Corrupt func(t testing.TB, name string)                 // damages a record. Default: none
	Connect func(testing.TB, leasetest.Transmit) Store      // makes a store whose messages go through transmit. Default: none
	Forget  func(t testing.TB, s lease.Store) time.Duration // as in leasetest.StoreHooks. Default: none
}

// Observed returns options for a store whose server has no clock, so that each client measures the time that
// is left.
func Observed(unit time.Duration) leasetest.Options {
	o := leasetest.Options{
		Unit:  unit,
		Can:   leasetest.Everything &^ leasetest.CanTellTime,
		Lacks: []string{"CanTellTime", "CanServeOldVersions", "Options.Store.Forget", "Options.Store.LoseWatches", "Options.Store.StepClock", "Options.Authority.Put"},
	}
	if testing.Short() {
		o.Can &^= leasetest.CanServeOldVersions // in old versions, every lease lasts for a minute
	}
	return o
}

// Run runs the named suites in parallel, or all of them if there are no names. The names are "Store",
// "Authority", "LoadingAuthority" and "Lease". "Authority" tests the authority that the store recommends, and
// "LoadingAuthority" the authority that [lease.NewAuthority] makes from the store.
func (s Suites) Run(t *testing.T, names ...string) {
	if len(names) == 0 {
		names = []string{"Store", "Authority", "LoadingAuthority", "Lease"}
	}
	o, another := s.Options, s.Another
	if another == nil {
		another = s.Open
	}
	open := func(t testing.TB) lease.Store { return s.Open(t) }
	authority := func(t testing.TB) lease.Authority { return s.Open(t).Authority() }
	o.Store.Forget = s.Forget
	o.Store.Another = func(t testing.TB, _ lease.Store) lease.Store { return another(t) }
	o.Store.Reopen = func(t testing.TB, old lease.Store) lease.Store {
		switch c := old.(type) {
		case interface{ Close() }:
			c.Close()
		case interface{ Close() error }:
			_ = c.Close()
		}
		return another(t)
	}
	o.Authority.Another = func(t testing.TB, _ lease.Authority) lease.Authority { return another(t).Authority() }
	o.Authority.Reopen = o.Authority.Another
	o.Lease.Authority = authority
	if s.Corrupt != nil {
		o.Store.Corrupt = func(t testing.TB, _ lease.Store, name string) { s.Corrupt(t, name) }
		o.Authority.Corrupt = func(t testing.TB, _ lease.Authority, name string) { s.Corrupt(t, name) }
	}
	if s.Connect != nil {
		o.Store.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Store { return s.Connect(t, transmit) }
		o.Authority.Connect = func(t testing.TB, transmit leasetest.Transmit) lease.Authority {
			return s.Connect(t, transmit).Authority()
		}
	}
	suites := map[string]func(t *testing.T){
		"Store":     func(t *testing.T) { leasetest.TestStore(t, open, &o) },
		"Authority": func(t *testing.T) { leasetest.TestAuthority(t, authority, &o) },
		"LoadingAuthority": func(t *testing.T) {
			leasetest.TestAuthority(t, func(t testing.TB) lease.Authority { return lease.NewAuthority(s.Open(t)) }, &o)
		},
		"Lease": func(t *testing.T) { leasetest.TestLease(t, NewLease, &o) },
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suites[name](t)
		})
	}
}

// NewLease makes a Session for the holder h. Pass NewLease to [leasetest.TestLease].
func NewLease(t testing.TB, h leasetest.Holder) lease.Lease {
	l, err := session.New(h.Authority, h.Name, &session.Options{Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}
