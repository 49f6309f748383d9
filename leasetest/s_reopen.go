package leasetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// A stateOf is a state of a record and a function that returns a record in that state.
type stateOf struct {
	what   string
	record func(s storeProbe, on lease.Snapshot) lease.Record
	needs  Ability
}

// states contains all states that a store can keep. A finite lock of such a record lasts for a
// hundred durations.
var states = []stateOf{
	{"released", func(s storeProbe, on lease.Snapshot) lease.Record {
		return lease.Record{ID: s.id(), Owner: "leasetest", Duration: s.D, Epoch: on.Record.Epoch + 1}
	}, 0},
	{"forgotten ID", func(_ storeProbe, on lease.Snapshot) lease.Record {
		return lease.Record{Epoch: on.Record.Epoch + 1}
	}, 0},
	{"leased", func(s storeProbe, on lease.Snapshot) lease.Record { return s.leased(on, 100*s.D) }, 0},
	{"infinite", func(s storeProbe, on lease.Snapshot) lease.Record { return s.leased(on, lease.Infinite) }, CanBeInfinite},
	{"breaking", func(s storeProbe, on lease.Snapshot) lease.Record {
		r := s.leased(on, 100*s.D)
		r.State = lease.Breaking
		return r
	}, CanBreak},
	{"infinite breaking", func(s storeProbe, on lease.Snapshot) lease.Record {
		r := s.leased(on, 100*s.D)
		r.State, r.Duration = lease.Breaking, lease.Infinite
		return r
	}, CanBreak | CanBeInfinite},
	{"expired", func(s storeProbe, on lease.Snapshot) lease.Record { return s.endedRecord(on, lease.Expired) }, 0},
	{"broken", func(s storeProbe, on lease.Snapshot) lease.Record { return s.endedRecord(on, lease.Broken) }, CanBreak},
}

// endedRecord returns the record of a lease that has ended, in the given state, such as Expired.
func (s storeProbe) endedRecord(on lease.Snapshot, state lease.State) lease.Record {
	r := s.leased(on, s.D)
	r.State, r.Until = state, time.Time{}
	return r
}

// eachState calls f for each state that the store can keep. Each call gets a name of its own.
func (s storeProbe) eachState(f func(name string, state stateOf)) {
	for _, state := range states {
		if s.can(state.needs) {
			f(fmt.Sprintf("%s/%s", s.name, state.what), state)
		}
	}
}

// raiseEpoch swaps the record of the named lease, and adds the given number to its epoch.
func (s storeProbe) raiseEpoch(name string, by uint64) lease.Snapshot {
	s.Helper()
	snap := s.load(name)
	next := s.leased(snap, 100*s.D)
	next.Epoch = snap.Record.Epoch + by
	return s.put(name, snap, next)
}

// reopenRules check that a store keeps its data when it is opened again.
var reopenRules = []rule{
	{"S3/reopening-keeps-every-state", "a record in any state is the same after the store was opened again, and can be swapped", hasReopen, func(p *probe) {
		s := p.store()
		put := map[string]lease.Snapshot{}
		s.eachState(func(name string, state stateOf) {
			put[name] = s.put(name, s.raiseEpoch(name, 5), state.record(s, s.load(name)))
		})
		for range 2 {
			s.reopen()
			for name, snap := range put {
				seen := s.requireRecord(name, snap.Record)
				put[name] = s.put(name, seen, snap.Record)
			}
		}
	}},
	{"S2/stale-swap-conflicts-after-reopening", "a swap of what was loaded before the store was opened again conflicts if the record has changed, in any state", hasReopen, func(p *probe) {
		s := p.store()
		s.eachState(func(name string, state stateOf) {
			absent := s.load(name)
			first := s.put(name, absent, state.record(s, absent))
			now := s.put(name, first, state.record(s, first))
			s.reopen()
			for range 4 { // later changes must not use an old version again
				for what, old := range map[string]lease.Snapshot{"its absence": absent, "its first record": first} {
					if _, err := s.Swap(s.ctx, name, old, s.leased(now, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
						s.Errorf("%s: a swap of %s, loaded before the store was opened again: %v", state.what, what, err)
					}
				}
				now = s.put(name, s.requireRecord(name, now.Record), state.record(s, now))
			}
		})
	}},
	{"S2/an-absence-has-a-new-version-after-reopening", "a swap of an absence that was loaded before the name was used and forgotten conflicts, also after the store was opened again", hasReopen | hasForget, func(p *probe) {
		s := p.store()
		absent := s.load(s.name)
		snap := s.put(s.name, absent, s.leased(absent, 100*s.D))
		s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
		s.forget()
		s.reopen()
		if _, err := s.Swap(s.ctx, s.name, absent, s.leased(absent, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
			s.Errorf("a swap of an absence that is over: %v", err)
		}
	}},
	{"S1/stale-swap-conflicts-after-forgetting", "a swap of a record that was forgotten meanwhile conflicts, and inserts nothing", hasForget, func(p *probe) {
		s := p.store()
		absent := s.load(s.name)
		leased := s.put(s.name, absent, s.leased(absent, 100*s.D))
		released := s.put(s.name, leased, lease.Record{Epoch: leased.Record.Epoch})
		s.forget()
		gone := s.load(s.name)
		if !gone.Record.ID.IsZero() || gone.Version == released.Version {
			s.history.printf("the store has kept the record")
		}
		for what, old := range map[string]lease.Snapshot{"its absence before": absent, "its lease": leased} {
			if snap, err := s.Swap(s.ctx, s.name, old, s.leased(released, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
				s.Errorf("a swap of %s, after the name was forgotten: %s, %v", what, outcomeText(snap.Record, nil), err)
			}
		}
		if seen := s.load(s.name); seen.Record.State.Locked() {
			s.Errorf("a swap that conflicts has inserted %s", recordText(seen.Record))
		}
	}},
	{"S3/the-highest-forgotten-epoch-counts", "the epoch of a name that is not known is no lower than the highest that was forgotten, whichever was forgotten last, and whatever its state was", hasForget, func(p *probe) {
		s := p.store()
		s.unknownNamesBeginAt(s.forgottenNames(s.forgetAll()), "")
	}},
	{"S3/forgotten-epochs-outlive-reopening", "the epoch of a name that is not known does not fall when the store is opened again", hasForget | hasReopen, func(p *probe) {
		s := p.store()
		epochs := s.forgetAll()
		gone := s.forgottenNames(epochs)
		for range 2 {
			s.reopen()
			s.unknownNamesBeginAt(gone, ", after the store was opened again")
			s.unknownNamesBeginAt(s.forgottenNames(epochs), ", after the store was opened again")
			s.forget()
		}
	}},
	{"S3/reopening-lowers-no-epoch", "the next grant under a name has a higher epoch than every one before the store was opened again, in any state", hasReopen, func(p *probe) {
		s := p.store()
		epochs := map[string]uint64{}
		s.eachState(func(name string, state stateOf) {
			epochs[name] = s.put(name, s.raiseEpoch(name, 9), state.record(s, s.load(name))).Record.Epoch
		})
		s.pass(s.Unit)
		s.reopen()
		for name, epoch := range epochs {
			if seen := s.load(name); seen.Record.Epoch < epoch {
				s.Errorf("%q had epoch %d, and has %d after the store was opened again", name, epoch, seen.Record.Epoch)
			}
		}
	}},
	{"S6/names-are-different-after-reopening", "names that were different leases are so after the store was opened again", hasReopen, func(p *probe) {
		s := p.store()
		put := map[string]lease.Record{}
		for _, pair := range similarNames {
			// Add a prefix, because other rules use the pairs too.
			for _, name := range []string{s.name + "/" + pair.a, s.name + "/" + pair.b} {
				if len(name) > lease.MaxLabel {
					continue
				}
				if snap, err := s.Load(s.ctx, name); err == nil && !snap.Record.State.Locked() {
					next := s.leased(snap, 100*s.D)
					if _, err := s.swap(name, snap, next); err == nil {
						put[name] = next
					}
				}
			}
		}
		s.reopen()
		for name, r := range put {
			s.requireRecord(name, r)
		}
	}},
	{"S7/a-watch-of-a-reopened-store-signals", "a watch that begins after the store was opened again signals", hasReopen | hasWatch, func(p *probe) {
		s := p.store()
		s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		s.reopen()
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		watch.ready()
		snap := s.load(s.name)
		s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
		if !watch.signalsChange() {
			s.Errorf("a release was not signalled")
		}
	}},
	{"S9/what-is-locked-is-not-forgotten-after-reopening", "a lock is not forgotten by a store that was opened again", hasReopen | hasForget, func(p *probe) {
		s := p.store()
		locked := map[string]lease.Record{}
		s.eachState(func(name string, state stateOf) {
			if put := s.put(name, s.load(name), state.record(s, s.load(name))); put.Record.State.Locked() {
				locked[name] = put.Record
			}
		})
		s.reopen()
		s.forget()
		for name, r := range locked {
			s.requireRecord(name, r)
		}
	}},
	{"S10/a-reopened-store-lists-what-is-held", "a list of a store that was opened again shows every lock", hasReopen | hasList, func(p *probe) {
		s := p.store()
		s.eachState(func(name string, state stateOf) { s.put(name, s.load(name), state.record(s, s.load(name))) })
		s.reopen()
		s.listsLocks(s)
	}},
	{"S5/reopening-starts-no-duration-anew", "a lease that is over is over after the store was opened again, and one that runs ends when it would have", hasReopen | CanTellTime, func(p *probe) {
		s := p.store()
		put := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 2*s.D))
		s.pass(s.D)
		s.reopen()
		seen := s.requireRecord(s.name, put.Record)
		if left := seen.Record.Remaining(seen.Now); left > s.D+s.Slack {
			s.Errorf("%v are left of a lease of %v, of which %v have passed", left, 2*s.D, s.D)
		}
		s.pass(s.D + s.Slack)
		s.reopen()
		if seen := s.load(s.name); seen.Record.At(seen.Now).State.Locked() {
			s.Errorf("after its end the store shows %s at %s", recordText(seen.Record), timeText(seen.Now))
		}
	}},
}

// listsLocks requires that the given client lists every locked record of eachState. The listed
// record must be equal to the loaded record.
func (s storeProbe) listsLocks(client storeProbe) {
	s.Helper()
	entries := s.list(client.bare, s.name)
	s.eachState(func(name string, state stateOf) {
		if r := s.load(name).Record; r.State.Locked() && !s.sameRecords(entries[name].Record, r) {
			s.Errorf("%s is listed as %s, and is %s", state.what, recordText(entries[name].Record), recordText(r))
		}
	})
}

// forgetAll makes the store forget names that have different epochs and states. It returns the
// epoch of each name.
func (s *storeProbe) forgetAll() map[string]uint64 {
	s.Helper()
	after := s.forget()
	if after > s.D && !s.Bubble {
		after = 0 // waiting would take too long, so that the store forgets only available records
	}
	over := []lease.State{lease.Available, lease.Expired, lease.Broken}
	if !s.can(CanBreak) {
		over = over[:2]
	}
	epochs, snaps := map[string]uint64{}, map[string]lease.Snapshot{}
	rounds := []uint64{3, 40, 5} // the highest epochs are not the last ones that are forgotten
	for i, by := range rounds {
		for _, state := range over {
			name := fmt.Sprint(s.name, "/", i, state)
			snap := s.load(name)
			next := s.leased(snap, 100*s.D+20*after)
			next.Epoch = snap.Record.Epoch + by + 100*uint64(state)
			snaps[name] = s.put(name, snap, next)
		}
	}
	for i := range rounds {
		for _, state := range over {
			name := fmt.Sprint(s.name, "/", i, state)
			r := s.endedRecord(snaps[name], state)
			r.Epoch = snaps[name].Record.Epoch
			epochs[name] = s.put(name, snaps[name], r).Record.Epoch
		}
		s.pass(2*after + s.Unit)
		s.forget()
	}
	return epochs
}

// forgottenNames returns those of the given names whose IDs the store has forgotten, with their
// epochs.
func (s storeProbe) forgottenNames(epochs map[string]uint64) map[string]uint64 {
	s.Helper()
	gone := map[string]uint64{}
	for name, epoch := range epochs {
		if s.load(name).Record.ID.IsZero() {
			gone[name] = epoch
		}
	}
	return gone
}

// unknownNamesBeginAt requires that the epoch of a name without a record is at least the highest
// epoch in gone.
func (s storeProbe) unknownNamesBeginAt(gone map[string]uint64, when string) {
	s.Helper()
	highest := uint64(0)
	for _, epoch := range gone {
		highest = max(highest, epoch)
	}
	for name := range gone {
		if seen := s.load(name).Record; seen.Epoch < highest {
			s.Errorf("epoch %d was forgotten, and %q begins at %d%s", highest, name, seen.Epoch, when)
		}
	}
	if seen := s.load(s.name + "/never-used").Record; seen.Epoch < highest {
		s.Errorf("epoch %d was forgotten, and a name that was never used begins at %d%s", highest, seen.Epoch, when)
	}
}
