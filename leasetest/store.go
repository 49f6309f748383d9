package leasetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestStore tests a store: it checks the clauses R and S of SPEC.md, with a subtest for each rule. The function
// newStore returns an empty store, or one on which the names of the subtest were never used;
// it is called in the subtest, and its bubble, and may register a clean-up on t. Without
// [Options.Bubble] it is called by several goroutines.
//
// Of [Options], Reopen, Forget, Corrupt and Another are for stores. A store is expected to be a
// [lease.Watcher], unless it lacks Watching, a [lease.Lister], unless it lacks Listing, and to keep
// to its Limits if it is a [lease.Limiter].
func TestStore(t *testing.T, newStore func(t testing.TB) lease.Store, o *Options) {
	must(newStore != nil, "TestStore: newStore must not be nil")
	s := &suite{rules: storeRules, options: o.withDefaults(), newStore: newStore}
	s.test(t)
}

var storeRules = slices.Concat(storeRecordRules, swapRules, storeStateRules, keepRules, reopenRules, timeRules, nameRules, watchRules, listRules)

// A storeProbe is a store under a rule.
type storeProbe struct {
	*probe
	lease.Store             // with its calls in the history
	bare        lease.Store // as it was made
}

func (p *probe) store() storeProbe {
	s := p.suite.newStore(p.TB)
	p.made(s, "newStore")
	if l, ok := s.(lease.Limiter); ok {
		p.Limits = l.Limits()
		p.D = p.leaseDuration()
	}
	return storeProbe{p, p.history.store(s), s}
}

// reopen closes the store and opens it again.
func (s *storeProbe) reopen() {
	s.history.printf("the store is reopened")
	s.bare = s.Options.Reopen(s.probe.TB, s.bare)
	s.made(s.bare, "Options.Reopen")
	s.Store = s.history.store(s.bare)
}

// forget has the store forget what it may.
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

// swap swaps next in for old, which is the current one. The store may
// conflict spuriously, but not forever.
func (s storeProbe) swap(name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	for range maxSpurious {
		if snap, err = s.Swap(s.ctx, name, old, next); !errors.Is(err, lease.ErrConflict) {
			break
		}
	}
	return snap, err
}

// maxSpurious is how many spurious conflicts are taken for a store that conflicts forever.
const maxSpurious = 10

// put makes a swap of the current version, which must commit.
func (s storeProbe) put(name string, old lease.Snapshot, next lease.Record) lease.Snapshot {
	s.Helper()
	snap, err := s.swap(name, old, next)
	s.need(err, "swap of the current version")
	return snap
}

// leased is a record that somebody has for d from the snapshot's time on.
func (s storeProbe) leased(on lease.Snapshot, d time.Duration) lease.Record {
	r := lease.Record{State: lease.Leased, ID: s.id(), Owner: "leasetest", Duration: d, Epoch: on.Record.Epoch + 1}
	if d != lease.Infinite {
		r.Until = on.Now.Round(0).UTC().Add(d)
	}
	return r
}

// shows requires that the record under name is r.
func (s storeProbe) shows(name string, r lease.Record) lease.Snapshot {
	s.Helper()
	snap := s.load(name)
	if !s.same(snap.Record.At(snap.Now), r.At(snap.Now)) {
		s.Errorf("the store shows %s, and not %s", recordText(snap.Record), recordText(r))
	}
	return snap
}
