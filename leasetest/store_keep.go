package leasetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// keepRules check that a store does not delete records and their epochs too early.
var keepRules = []rule{
	{"S3/a-swap-lowers-no-epoch", "a swap to a record with a lower epoch is refused and changes nothing, in any state, and under a name that is not known", 0, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) {
			was := s.raiseEpoch(name, 9)
			next := state.record(s, was)
			next.Epoch = was.Record.Epoch - 1
			if _, err := s.swap(name, was, next); err == nil {
				s.Errorf("%s: a swap from epoch %d to epoch %d committed", state.what, was.Record.Epoch, next.Epoch)
			}
			s.requireRecord(name, was.Record)
		})
		if !s.can(hasForget) {
			return
		}
		gone := s.raiseEpoch(s.name+"/forgotten", 9)
		s.put(s.name+"/forgotten", gone, lease.Record{Epoch: gone.Record.Epoch})
		s.forget()
		for _, name := range []string{s.name + "/forgotten", s.name + "/never-used"} {
			was := s.load(name)
			next := s.leased(was, 100*s.D)
			if next.Epoch = was.Record.Epoch - 1; was.Record.Epoch < 2 {
				continue // the lower epoch would be zero, which the record of a held lease never has
			}
			if _, err := s.swap(name, was, next); err == nil {
				s.Errorf("%q is not known and begins at epoch %d, and a swap to epoch %d committed", name, was.Record.Epoch, next.Epoch)
			}
		}
	}},
	{"S3/a-known-name-has-an-epoch-of-its-own", "the epoch of a name that is known does not rise because another name with a higher epoch was forgotten", hasForget, func(p *tester) {
		s := p.store()
		known := map[string]lease.Record{}
		s.eachState(func(name string, state recordState) {
			if r := s.putState(name, state).Record; r.State.Locked() { // the store may delete the record of a lease that is not locked
				known[name] = r
			}
		})
		gone := s.raiseEpoch(s.name+"/gone", 1000)
		s.put(s.name+"/gone", gone, lease.Record{Epoch: gone.Record.Epoch})
		s.forget()
		for range 2 {
			for name, r := range known {
				s.put(name, s.requireRecord(name, r), r)
			}
			if s.can(hasList) {
				s.listsLocks(s)
			}
			if !s.can(hasReopen) {
				return
			}
			s.reopen()
		}
	}},
	{"S3/epoch-outlives-idleness", "a record that was not used for a long time keeps its epoch, or is forgotten without letting epochs fall", 0, func(p *tester) {
		s := p.store()
		ended := s.putLeased(s.name+"/ended", s.Unit)
		released := s.putLeased(s.name+"/released", 100*s.D)
		s.put(s.name+"/released", released, lease.Record{Epoch: released.Record.Epoch})
		s.pass(s.idleTime())
		for name, epoch := range map[string]uint64{s.name + "/ended": ended.Record.Epoch, s.name + "/released": released.Record.Epoch} {
			if seen := s.load(name); seen.Record.Epoch < epoch {
				s.Errorf("after %v the epoch of %q is %d, and was %d", s.idleTime(), name, seen.Record.Epoch, epoch)
			}
		}
	}},
	{"S9/what-is-locked-is-never-forgotten", "a leased and a breaking record are not forgotten, also after the store was opened again", hasForget, func(p *tester) {
		s := p.store()
		held := map[string]lease.Record{}
		s.eachState(func(name string, state recordState) {
			if put := s.putState(name, state); put.Record.State.Locked() {
				held[name] = put.Record
			}
		})
		for range 2 {
			s.forget()
			for name, r := range held {
				s.requireRecord(name, r)
			}
			if !s.can(hasReopen) {
				return
			}
			s.reopen()
		}
	}},
	{"S9/what-stays-locked-is-never-forgotten", "a leased, a breaking and an infinite record are not forgotten while they are locked, however long ago they were written", hasForget | exactTime, func(p *tester) {
		s := p.store()
		after := min(s.forget(), s.idleTime())
		put := map[string]lease.Record{}
		keep := func(what string, state lease.State, d time.Duration) {
			put[s.name+what] = s.putAs(s.name+what, state, d).Record
		}
		if long := 100*s.D + 4*after; s.Limits.MaxDuration == 0 || long <= s.Limits.MaxDuration {
			keep("/leased", lease.Leased, long)
			if s.can(CanBreak) {
				keep("/breaking", lease.Breaking, long)
			}
		}
		if s.can(CanBeInfinite) {
			keep("/infinite", lease.Leased, lease.Infinite)
		}
		s.pass(3*after + s.Unit)
		s.forget()
		for name, r := range put {
			s.requireRecord(name, r)
		}
	}},
	{"S9/what-is-renewed-is-never-forgotten", "a lease that was renewed is not forgotten while it is locked, however long ago it was first granted", hasForget | exactTime, func(p *tester) {
		s := p.store()
		after := min(s.forget(), s.idleTime())
		d := max(s.D, after/200) // d is long enough that a few hundred renewals cover the pause
		if s.Limits.MaxDuration > 0 {
			d = min(d, s.Limits.MaxDuration)
		}
		snap := s.putLeased(s.name, d)
		began := time.Now()
		for n := 0; n < 1000 && time.Since(began) < 2*(d+after); n++ {
			s.pass(d / 2)
			next := snap.Record
			next.Until = s.load(s.name).Now.Round(0).UTC().Add(d)
			snap = s.put(s.name, snap, next)
		}
		s.forget()
		s.requireRecord(s.name, snap.Record)
	}},
	{"S9/the-stated-time-counts-from-the-end", "a record is remembered for the stated time after its lease or its break has ended, however long ago it was written", hasForget | exactTime, func(p *tester) {
		s := p.store()
		after := s.forget()
		d := 4*after + s.Unit
		if s.Limits.MaxDuration > 0 {
			d = min(d, s.Limits.MaxDuration)
		}
		put := map[string]lease.Record{}
		for _, state := range []lease.State{lease.Leased, lease.Breaking} {
			if state == lease.Breaking && !s.can(CanBreak) {
				continue
			}
			name := s.name + "/" + state.String()
			put[name] = s.putAs(name, state, d).Record
		}
		s.pass(d + after/2)
		s.forget()
		for name, r := range put {
			s.requireRecord(name, r)
		}
	}},
	{"S9/what-may-be-renewed-is-kept-for-the-stated-time", "an expired and a broken record are remembered for the time that the store states", hasForget, func(p *tester) {
		s := p.store()
		after := s.forget()
		if after < 0 {
			s.Fatalf("the stated time is %v", after)
		}
		if after == 0 {
			s.Skip("the store states that it remembers nothing for any time")
		}
		over, ending := []lease.State{lease.Expired, lease.Broken}, []lease.State{lease.Leased, lease.Breaking}
		if !s.can(CanBreak) {
			over, ending = over[:1], ending[:1]
		}
		sent, put := time.Now(), map[lease.State]lease.Record{}
		for _, state := range slices.Concat(over, ending) {
			put[state] = s.putAs(s.name+"/"+state.String(), state, s.Unit).Record
		}
		keeps := func(states []lease.State) {
			for _, state := range states {
				s.requireRecord(s.name+"/"+state.String(), put[state])
			}
		}
		s.forget()
		if time.Since(sent) < after {
			keeps(over)
		}
		s.pass(s.Unit + min(after/2, s.longestWait()))
		s.forget()
		keeps(ending)
	}},
}

// idleTime returns how long a rule leaves a record unused, to find out whether unused records are deleted.
func (p *tester) idleTime() time.Duration {
	if p.Bubble {
		return 400 * 24 * time.Hour
	}
	return 2 * p.D
}

// longestWait limits the total sleep of a rule that waits until a store may delete a record.
func (p *tester) longestWait() time.Duration {
	if p.Bubble {
		return time.Hour
	}
	return 2 * time.Second
}

// A recordState is a state of a record, with a function that makes a record in this state.
type recordState struct {
	what   string
	record func(s storeTester, on lease.Snapshot) lease.Record
	needs  Ability
}

// states contains all states that a record can have. Every finite lock lasts for 100*s.D.
var states = []recordState{
	{"released", func(s storeTester, on lease.Snapshot) lease.Record {
		return lease.Record{ID: s.id(), Owner: "leasetest", Duration: s.D, Epoch: on.Record.Epoch + 1}
	}, 0},
	{"forgotten ID", func(_ storeTester, on lease.Snapshot) lease.Record {
		return lease.Record{Epoch: on.Record.Epoch + 1}
	}, 0},
	{"leased", func(s storeTester, on lease.Snapshot) lease.Record { return s.leased(on, 100*s.D) }, 0},
	{"infinite", func(s storeTester, on lease.Snapshot) lease.Record { return s.leased(on, lease.Infinite) }, CanBeInfinite},
	{"breaking", func(s storeTester, on lease.Snapshot) lease.Record {
		r := s.leased(on, 100*s.D)
		r.State = lease.Breaking
		return r
	}, CanBreak},
	{"infinite breaking", func(s storeTester, on lease.Snapshot) lease.Record {
		r := s.leased(on, 100*s.D)
		r.State, r.Duration = lease.Breaking, lease.Infinite
		return r
	}, CanBreak | CanBeInfinite},
	{"expired", func(s storeTester, on lease.Snapshot) lease.Record { return s.endedRecord(on, lease.Expired) }, 0},
	{"broken", func(s storeTester, on lease.Snapshot) lease.Record { return s.endedRecord(on, lease.Broken) }, CanBreak},
}

// endedRecord returns the record of a lease that has ended and is in the given state, such as Expired.
func (s storeTester) endedRecord(on lease.Snapshot, state lease.State) lease.Record {
	r := s.leased(on, s.D)
	r.State, r.Until = state, time.Time{}
	return r
}

func (s storeTester) putState(name string, state recordState) lease.Snapshot {
	s.Helper()
	old := s.load(name)
	return s.put(name, old, state.record(s, old))
}

// eachState calls f for each state that the store can represent. Each call gets a new name.
func (s storeTester) eachState(f func(name string, state recordState)) {
	for _, state := range states {
		if s.can(state.needs) {
			f(fmt.Sprintf("%s/%s", s.name, state.what), state)
		}
	}
}

// raiseEpoch raises the epoch of the named lease by the given number in a single swap.
func (s storeTester) raiseEpoch(name string, by uint64) lease.Snapshot {
	s.Helper()
	snap := s.load(name)
	next := s.leased(snap, 100*s.D)
	next.Epoch = snap.Record.Epoch + by
	return s.put(name, snap, next)
}

// reopenRules check that a store keeps its data when it is opened again.
var reopenRules = []rule{
	{"S3/reopening-keeps-every-state", "a record in any state is the same after the store was opened again, and can be swapped", hasReopen, func(p *tester) {
		s := p.store()
		put := map[string]lease.Snapshot{}
		s.eachState(func(name string, state recordState) {
			put[name] = s.put(name, s.raiseEpoch(name, 5), state.record(s, s.load(name)))
		})
		for range 2 {
			s.reopen()
			for name, snap := range put {
				want := snap.Record
				if want.ID.IsZero() { // the store may have deleted the record, and then reports the highest epoch of all names
					want.Epoch = max(want.Epoch, s.load(name).Record.Epoch)
				}
				put[name] = s.put(name, s.requireRecord(name, want), want)
			}
		}
	}},
	{"S2/stale-swap-conflicts-after-reopening", "a swap of what was loaded before the store was opened again conflicts if the record has changed, in any state", hasReopen, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) {
			absent := s.load(name)
			first := s.put(name, absent, state.record(s, absent))
			now := s.put(name, first, state.record(s, first))
			s.reopen()
			for range 4 { // several rounds, because later changes must not use an old version again either
				for what, old := range map[string]lease.Snapshot{"its absence": absent, "its first record": first} {
					if _, err := s.Swap(s.ctx, name, old, s.leased(now, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
						s.Errorf("%s: a swap of %s, loaded before the store was opened again: %v", state.what, what, err)
					}
				}
				now = s.put(name, s.requireRecord(name, now.Record), state.record(s, now))
			}
		})
	}},
	{"S2/no-version-recurs-in-a-long-life", "a version that was replaced does not come back, in whatever order a name is used, released and forgotten and the store is opened again, and a swap of it does not commit", 0, func(p *tester) {
		s := p.store()
		now := s.load(s.name)
		var replaced []lease.Snapshot
		// Each letter stands for a step: g grants the lease, r releases it or writes a record without a
		// grant, f makes the store delete records, and o opens the store again.
		for _, step := range "ggogrogrfogrfooggrfrfrfg" {
			was := now
			switch step {
			case 'g':
				now = s.put(s.name, now, s.leased(now, 100*s.D))
			case 'r':
				now = s.put(s.name, now, lease.Record{Epoch: now.Record.Epoch})
			case 'f':
				if !s.can(hasForget) {
					continue
				}
				s.forget()
				now = s.load(s.name)
			case 'o':
				if !s.can(hasReopen) {
					continue
				}
				s.reopen()
				now = s.load(s.name)
			}
			if was.Version != now.Version {
				replaced = append(replaced, was)
			}
			for _, old := range replaced {
				if old.Version == now.Version {
					s.Fatalf("version %q has come back", old.Version)
				}
			}
			if len(replaced) == 0 {
				continue
			}
			old := replaced[p.rand.IntN(len(replaced))]
			old.Record = now.Record // the record is current, and only the version is old
			if _, err := s.Swap(s.ctx, s.name, old, s.leased(now, 100*s.D)); err == nil {
				s.Fatalf("a swap of version %q committed, and the version is %q", old.Version, now.Version)
			}
		}
	}},
	{"S7/a-watch-of-a-reopened-store-signals", "a watch that begins after the store was opened again signals", hasReopen | hasWatch, func(p *tester) {
		s := p.store()
		s.putLeased(s.name, 100*s.D)
		s.reopen()
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		watch.ready()
		snap := s.load(s.name)
		s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
		if !watch.signalsChange() {
			s.Errorf("a release was not signalled")
		}
	}},
	{"S10/a-reopened-store-lists-what-is-held", "a list of a store that was opened again shows every lock", hasReopen | hasList, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) { s.putState(name, state) })
		s.reopen()
		s.listsLocks(s)
	}},
}

// listsLocks requires that the list of the given client shows every locked record that eachState has written.
func (s storeTester) listsLocks(client storeTester) {
	s.Helper()
	entries := s.list(client.bare, s.name)
	s.eachState(func(name string, state recordState) {
		if r := s.load(name).Record; r.State.Locked() && !s.sameRecords(entries[name].Record, r) {
			s.Errorf("%s is listed as %s, and is %s", state.what, recordText(entries[name].Record), recordText(r))
		}
	})
}

// requireMinEpoch tests the epochs of names whose records the store has deleted. The map contains the epoch
// that was written under each name. A record that now has no ID was deleted. Its name must have an epoch that
// is at least as high as the epochs of all deleted records. The same must be true of a name that was never
// used.
func (s storeTester) requireMinEpoch(epochs map[string]uint64, when string) {
	s.Helper()
	highest := uint64(0)
	seen := map[string]lease.Record{s.name + "/never-used": s.load(s.name + "/never-used").Record}
	for name, epoch := range epochs {
		if r := s.load(name).Record; r.ID.IsZero() {
			seen[name] = r
			highest = max(highest, epoch)
		}
	}
	for name, r := range seen {
		if r.Epoch < highest {
			s.Errorf("epoch %d was forgotten, and %q begins at %d%s", highest, name, r.Epoch, when)
		}
	}
}
