package leasetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// TestStore tests a store against the R and S clauses of SPEC.md, with one subtest for each rule.
//
// Each subtest calls newStore, and acquires some leases. The store that newStore returns must not contain any
// records of these leases yet. The function newStore may register cleanup functions on t. With
// [Options].Bubble, the subtest calls newStore inside its bubble. Without a bubble, several subtests call
// newStore at the same time.
//
// If the store is a [lease.Watcher] or a [lease.Lister], the suite also tests the method Watch or List. If
// the store is a [lease.Limiter], the suite uses durations within its limits. The hooks in Options.Store
// allow further tests.
func TestStore(t *testing.T, newStore func(t testing.TB) lease.Store, o *Options) {
	must(newStore != nil, "TestStore: newStore must not be nil")
	s := &suite{rules: storeRules, options: o.withDefaults(), newStore: newStore}
	s.test(t)
}

var storeRules = slices.Concat(storeWorks, storeRecordRules, swapRules, storeStateRules, keepRules, reopenRules, timeRules, nameRules, watchRules, listRules, storeLinkRules)

// storeWorks is checked first, because all other rules would fail if the store could not connect.
var storeWorks = []rule{
	{"S1/it-works-at-all", "a record that was swapped in is loaded", 0, func(p *tester) {
		s := p.store()
		old := s.load(s.name)
		next := s.leased(old, s.D)
		s.put(s.name, old, next)
		if got := s.load(s.name).Record; got.ID != next.ID {
			s.Errorf("%s was stored, and %s is loaded", outcomeText(next, nil), outcomeText(got, nil))
		}
	}},
}

// A storeTester combines a store under test with the rule that tests it.
type storeTester struct {
	*tester
	lease.Store             // records its calls in the history
	bare        lease.Store // the store without the history
}

func (p *tester) store() storeTester {
	s := p.suite.newStore(p.TB)
	p.checkMade(s, "newStore")
	if l, ok := s.(lease.Limiter); ok {
		p.Limits = l.Limits()
		p.D = p.leaseDuration()
	}
	return storeTester{p, p.history.store(s), s}
}

func (s *storeTester) reopen() {
	s.history.printf("the store is reopened")
	s.bare = s.Options.Store.Reopen(s.tester.TB, s.bare)
	s.checkMade(s.bare, "Options.Store.Reopen")
	s.Store = s.history.store(s.bare)
}

func (s *storeTester) stepClock(d time.Duration) {
	s.history.printf("the clock of the store is moved by %v", d)
	s.Options.Store.StepClock(s.tester.TB, s.bare, d)
}

func (s *storeTester) forget() (after time.Duration) {
	s.history.printf("the store forgets")
	return s.Options.Store.Forget(s.tester.TB, s.bare)
}

func (s storeTester) load(name string) lease.Snapshot {
	s.Helper()
	snap, err := s.Load(s.ctx, name)
	s.need(err, "load")
	return snap
}

// The method swap calls Store.Swap. In a store with one counter of versions for all names, a swap of another
// name can cause a spurious conflict. If there is a conflict although the record has not changed, the method
// therefore tries again.
func (s storeTester) swap(name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	for range maxSpurious {
		if snap, err = s.Swap(s.ctx, name, old, next); !errors.Is(err, lease.ErrConflict) {
			break
		}
		now := s.load(name)
		if now.Record.At(now.Now) != old.Record.At(now.Now) {
			break
		}
		old.Version = now.Version
	}
	return snap, err
}

// maxSpurious is the number of successive conflicts that cannot all be spurious.
const maxSpurious = 10

func (s storeTester) put(name string, old lease.Snapshot, next lease.Record) lease.Snapshot {
	s.Helper()
	snap, err := s.swap(name, old, next)
	s.need(err, "swap of the current version")
	return snap
}

// The method leased makes a record in the state Leased. Its lease starts at the time of the given snapshot,
// and lasts for d.
func (s storeTester) leased(on lease.Snapshot, d time.Duration) lease.Record {
	r := lease.Record{State: lease.Leased, ID: s.id(), Owner: "leasetest", Duration: d, Epoch: on.Record.Epoch + 1}
	if d != lease.Infinite {
		r.Until = on.Now.Round(0).UTC().Add(d)
	}
	return r
}

// The method putLeased writes the record of a lease that starts now and lasts for d.
func (s storeTester) putLeased(name string, d time.Duration) lease.Snapshot {
	s.Helper()
	return s.putAs(name, lease.Leased, d)
}

// The method putAs is like putLeased, but the lease is in the given state. If this state is not locked, the
// record has no end.
func (s storeTester) putAs(name string, state lease.State, d time.Duration) lease.Snapshot {
	s.Helper()
	old := s.load(name)
	next := s.leased(old, d)
	if next.State = state; !state.Locked() {
		next.Until = time.Time{}
	}
	return s.put(name, old, next)
}

func (s storeTester) requireRecord(name string, r lease.Record) lease.Snapshot {
	s.Helper()
	snap := s.load(name)
	if !s.sameRecords(r.At(snap.Now), snap.Record.At(snap.Now)) {
		s.Errorf("the store shows %s, and not %s", recordText(snap.Record), recordText(r))
	}
	return snap
}

// swapRules check Load and Swap.
var swapRules = []rule{
	{"S1/unknown-name-is-absent", "a name that the store does not know gives a record that is zero but for its epoch", 0, func(p *tester) {
		s := p.store()
		snap := s.load(s.name)
		if want := (lease.Record{Epoch: snap.Record.Epoch}); snap.Record != want {
			s.Errorf("the store shows %s", outcomeText(snap.Record, nil))
		}
		if snap.Version == "" {
			s.Errorf("the version of an absent record is empty")
		}
	}},
	{"S1/stale-swap-conflicts", "a swap of a version that is no longer the current one is a conflict, and certainly not applied", 0, func(p *tester) {
		s := p.store()
		for _, what := range []string{"absence", "a record"} {
			old := s.load(s.name)
			first, second := s.leased(old, 100*s.D), s.leased(old, 100*s.D)
			now := s.put(s.name, old, first)
			snap, err := s.Swap(s.ctx, s.name, old, second)
			if !errors.Is(err, lease.ErrConflict) {
				s.Errorf("the second swap of %s: %v", what, err)
			}
			if snap.Version != "" && (snap.Version != now.Version || !s.sameRecords(first, snap.Record)) {
				s.Errorf("the conflict came with version %q, %s", snap.Version, recordText(snap.Record))
			}
			s.requireRecord(s.name, first)
		}
	}},
	{"S1/foreign-version-commits-nothing", "a swap of a version that the name never had does not commit, whether the name has a record or not", 0, func(p *tester) {
		s := p.store()
		other := s.load(s.name + "/other")
		other = s.put(s.name+"/other", other, s.leased(other, 100*s.D))
		for _, what := range []string{"absence", "a record"} {
			now := s.load(s.name)
			// If the store never made the version, Swap may return an error other than a conflict.
			for _, version := range []string{"invented", other.Version, ""} {
				if version == now.Version {
					continue // the versions of different names may be equal
				}
				old := now
				old.Version = version
				if _, err := s.Swap(s.ctx, s.name, old, s.leased(now, 100*s.D)); err == nil {
					s.Errorf("a swap of version %q committed, when %s had version %q", version, what, now.Version)
				}
				s.requireRecord(s.name, now.Record)
			}
			now = s.load(s.name)
			s.put(s.name, now, s.leased(now, 100*s.D))
		}
	}},
	{"S1/version-decides-not-record", "a swap conflicts if the record was changed since the load, even if it was changed back", 0, func(p *tester) {
		s := p.store()
		old := s.load(s.name)
		old = s.put(s.name, old, s.leased(old, 100*s.D))
		other := old.Record
		other.Owner = "another"
		now := s.put(s.name, old, other)
		now = s.put(s.name, now, old.Record)
		if _, err := s.Swap(s.ctx, s.name, old, other); !errors.Is(err, lease.ErrConflict) {
			s.Errorf("a swap of version %q, when %q shows the same record: %v", old.Version, now.Version, err)
		}
	}},
	{"S1/a-swap-conflicts-after-the-store's-authority", "if the store has an authority of its own, a swap conflicts after each change that this authority has made since the load, and a swap of the zero Snapshot is never committed", hasAuthority, func(p *tester) {
		s := p.store()
		own := s.bare.(authorityMaker).Authority()
		p.checkMade(own, "the method Authority of the store")
		a := authorityTester{p, p.history.authority(own), own}
		id, other := p.id(), p.id()
		last := id // the ID of the lease at the end
		if p.can(CanChange) {
			last = other
		}
		// Some stores make the text of a version only when a caller needs it. The rule therefore has two
		// rounds. After each change, the first round begins with a swap of the zero Snapshot, and the second
		// round begins with a swap of a loaded snapshot.
		for round := range 2 {
			for _, req := range []lease.Request{acquire(id, p.D), acquire(id, p.D), renew(id), renew(id), {Action: lease.ActionChange, ID: id, Proposed: other},
				{Action: lease.ActionBreak, Period: lease.Grace(p.D / 2)}, {Action: lease.ActionBreak, Period: lease.Grace(p.D / 4)}, release(last)} {
				if p.lacksAbility(req) {
					continue
				}
				old := s.load(s.name)
				p.pass(p.Unit / 10) // so that a renewal changes the end of the lease
				granted := a.grant(req).Record
				nothing := func() { // a swap by a caller that has loaded nothing
					if _, err := s.Swap(s.ctx, s.name, lease.Snapshot{}, s.leased(lease.Snapshot{Now: old.Now, Record: lease.Record{Epoch: old.Record.Epoch + 9}}, 100*s.D)); err == nil {
						s.Errorf("a swap of the zero Snapshot was committed after %s", requestText(req))
					}
				}
				loaded := func() {
					if granted == old.Record { // a renewal within one tick of a coarse clock changes nothing
						return
					}
					if _, err := s.Swap(s.ctx, s.name, old, s.leased(lease.Snapshot{Now: old.Now, Record: lease.Record{Epoch: granted.Epoch}}, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
						s.Errorf("a swap of version %q, before %s: %v", old.Version, requestText(req), err)
					}
				}
				if round == 0 {
					nothing()
					loaded()
				} else {
					loaded()
					nothing()
				}
				s.requireRecord(s.name, granted)
			}
		}
	}},
	{"S1/an-ended-context-is-no-conflict", "whatever becomes of its context, a swap that conflicts was not applied, and one that commits was", 0, func(p *tester) {
		s := p.store()
		began := time.Now()
		old := s.putLeased(s.name, 100*s.D)
		took := min(time.Since(began), s.Unit/2)
		for i := range 40 {
			ctx := s.endingAfter(took*time.Duration(i)/20, i)
			if i == 0 {
				<-ctx.Done() // the context of the first swap is done before the swap starts
			}
			next := s.leased(old, 100*s.D)
			_, err := s.Swap(ctx, s.name, old, next)
			<-ctx.Done()
			old = s.load(s.name)
			if applied := old.Record.ID == next.ID; err == nil && !applied || errors.Is(err, lease.ErrConflict) && applied {
				s.Errorf("a swap whose context ended says %v, and it was applied: %v", err, applied)
			}
		}
	}},
	{"S1/no-update-is-lost", "each swap starts from what the one before committed, whichever client makes it", 0, func(p *tester) {
		s := p.store()
		s.increment(s.clients(), s.name)
	}},
	{"S2/no-version-recurs", "no two states of a name have the same version, even if their records are equal", 0, func(p *tester) {
		s := p.store()
		snap := s.load(s.name)
		seen := map[string]bool{snap.Version: true}
		one := s.leased(snap, 100*s.D)
		another := one
		another.Owner = "another"
		released := lease.Record{Epoch: one.Epoch}
		for _, next := range slices.Repeat([]lease.Record{one, another, one, released}, 80) {
			snap = s.put(s.name, snap, next)
			if seen[snap.Version] {
				s.Fatalf("version %q recurred", snap.Version)
			}
			seen[snap.Version] = true
		}
	}},
	{"S8/a-done-context-shows-no-old-record", "a load whose context is already done returns an error, or the record as it is, and not what this client saw before another replaced it", 0, func(p *tester) {
		s := p.store()
		clients := s.clients()
		for i, writes := range clients {
			reads := clients[len(clients)-1-i]
			_ = reads.load(s.name) // so that the client has loaded the previous record
			put := writes.putLeased(s.name, 100*s.D)
			if snap, err := reads.Load(s.doneContext(), s.name); err == nil && !s.sameRecords(put.Record, snap.Record) {
				s.Errorf("the load shows %s, and not %s", recordText(snap.Record), recordText(put.Record))
			}
		}
	}},
}

func (p *tester) callConcurrently(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(p.guarded(func() { f(i) }))
	}
	wg.Wait()
}

// swapAmongOthers replaces the record of a name by that of a new lease, and returns the snapshot of the
// previous record. Like an authority, it loads the record again after each conflict. Conflicts are normal
// here, because other goroutines swap as well, and all names of a store may share one version.
func (s storeTester) swapAmongOthers(name string) (old lease.Snapshot, err error) {
	const most = 1000 // the limit for a client that always shows an old record
	for range most {
		if old, err = s.Load(s.ctx, name); err != nil {
			return old, fmt.Errorf("load: %w", err)
		}
		if s.Bubble {
			time.Sleep(time.Nanosecond) // so that other goroutines load the same version
		}
		if _, err = s.Swap(s.ctx, name, old, s.leased(old, 100*s.D)); err == nil {
			return old, nil
		}
		if !errors.Is(err, lease.ErrConflict) {
			return old, fmt.Errorf("swap: %w", err)
		}
	}
	return old, fmt.Errorf("%d swaps in a row conflict", most)
}

// increment makes concurrent swaps through the given clients. Each swap increases the epoch of a named lease
// by one. At the end, the epoch of each lease must have increased by the number of its successful swaps.
func (s storeTester) increment(clients []storeTester, names ...string) {
	const workers, each = 6, 10
	var mu sync.Mutex
	// Until the first swap of a lease, its epoch may rise by itself. Therefore the method counts from the
	// lowest epoch that a swap has replaced.
	began := map[string]uint64{}
	s.callConcurrently(workers, func(i int) {
		c, name := clients[i%len(clients)], names[i%len(names)]
		for range each {
			old, err := c.swapAmongOthers(name)
			if err != nil {
				s.Errorf("%v", err)
				return
			}
			mu.Lock()
			if first, ok := began[name]; !ok || old.Record.Epoch < first {
				began[name] = old.Record.Epoch
			}
			mu.Unlock()
		}
	})
	want := uint64(workers / len(names) * each)
	for _, name := range names {
		if got := s.load(name).Record.Epoch - began[name]; got != want {
			s.Errorf("%d increments were acknowledged, and %d are there", want, got)
		}
	}
}

// clients returns the store and, if Options.Store.Another is set, a second client of its data.
func (s storeTester) clients() []storeTester {
	s.Helper()
	if !s.can(hasAnother) {
		return []storeTester{s}
	}
	other := s.Options.Store.Another(s.tester.TB, s.bare)
	s.checkMade(other, "Options.Store.Another")
	return []storeTester{s, {s.tester, s.history.store(other), other}}
}
