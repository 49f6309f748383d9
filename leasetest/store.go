package leasetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestStore tests a store. It checks the clauses R and S of SPEC.md, with one subtest for each
// rule.
//
// Each subtest calls newStore to get a store. The store must have no record yet for the lease names
// that the subtest uses. The function newStore runs inside the bubble of the subtest, if there is
// one, and may register cleanup functions on t. Without [Options.Bubble] the function newStore must
// be safe for concurrent use by multiple goroutines.
//
// The fields Reopen, Forget, Corrupt and Another of [Options] apply only to stores. If the store is
// a [lease.Watcher] or a [lease.Lister], the suite also tests its watches or its lists. If the
// store is a [lease.Limiter], the suite uses durations within the limits of the store.
func TestStore(t *testing.T, newStore func(t testing.TB) lease.Store, o *Options) {
	must(newStore != nil, "TestStore: newStore must not be nil")
	s := &suite{rules: storeRules, options: o.withDefaults(), newStore: newStore}
	s.test(t)
}

var storeRules = slices.Concat(storeRecordRules, swapRules, storeStateRules, keepRules, reopenRules, timeRules, nameRules, watchRules, listRules)

// A storeProbe is a store under test, together with the rule that tests it.
type storeProbe struct {
	*probe
	lease.Store             // records its calls in the history
	bare        lease.Store // without the history
}

func (p *probe) store() storeProbe {
	s := p.suite.newStore(p.TB)
	p.checkMade(s, "newStore")
	if l, ok := s.(lease.Limiter); ok {
		p.Limits = l.Limits()
		p.D = p.leaseDuration()
	}
	return storeProbe{p, p.history.store(s), s}
}

// reopen closes the store and opens it again with the same data.
func (s *storeProbe) reopen() {
	s.history.printf("the store is reopened")
	s.bare = s.Options.Reopen(s.probe.TB, s.bare)
	s.checkMade(s.bare, "Options.Reopen")
	s.Store = s.history.store(s.bare)
}

// forget calls Options.Forget.
func (s *storeProbe) forget() (after time.Duration) {
	s.history.printf("the store forgets")
	return s.Options.Forget(s.probe.TB, s.bare)
}

func (s storeProbe) load(name string) lease.Snapshot {
	s.Helper()
	snap, err := s.Load(s.ctx, name)
	s.need(err, "load")
	return snap
}

// swap replaces the current snapshot old by the record next. If the store returns a conflict, swap
// retries, because a conflict may be spurious.
func (s storeProbe) swap(name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	for range maxSpurious {
		if snap, err = s.Swap(s.ctx, name, old, next); !errors.Is(err, lease.ErrConflict) {
			break
		}
	}
	return snap, err
}

// After maxSpurious conflicts in a row, a rule assumes that the conflicts are not spurious.
const maxSpurious = 10

// put swaps the snapshot old for the record next, and requires that the swap succeeds.
func (s storeProbe) put(name string, old lease.Snapshot, next lease.Record) lease.Snapshot {
	s.Helper()
	snap, err := s.swap(name, old, next)
	s.need(err, "swap of the current version")
	return snap
}

// leased returns the record of a lease that is acquired for d at the time of the given snapshot.
func (s storeProbe) leased(on lease.Snapshot, d time.Duration) lease.Record {
	r := lease.Record{State: lease.Leased, ID: s.id(), Owner: "leasetest", Duration: d, Epoch: on.Record.Epoch + 1}
	if d != lease.Infinite {
		r.Until = on.Now.Round(0).UTC().Add(d)
	}
	return r
}

// requireRecord loads the named lease and requires that its record is r.
func (s storeProbe) requireRecord(name string, r lease.Record) lease.Snapshot {
	s.Helper()
	snap := s.load(name)
	if !s.sameRecords(snap.Record.At(snap.Now), r.At(snap.Now)) {
		s.Errorf("the store shows %s, and not %s", recordText(snap.Record), recordText(r))
	}
	return snap
}
