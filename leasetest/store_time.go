package leasetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// twins returns two records in the given state that have the same epoch but different owners. In a state
// without an ID, the two records are equal.
func (state recordState) twins(s storeTester, on lease.Snapshot) (one, other lease.Record) {
	one = state.record(s, on)
	if other = one; !one.ID.IsZero() {
		other.Owner = "another"
	}
	return one, other
}

// storeStateRules check a store with records in every state.
var storeStateRules = []rule{
	{"S1/swap-commits-in-every-state", "a swap commits the record that it was given, from every state to every state, and returns it", 0, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) {
			for _, before := range states {
				if !s.can(before.needs) {
					continue
				}
				name := name + "/" + before.what
				was := s.put(name, s.raiseEpoch(name, 9), before.record(s, s.load(name)))
				next := state.record(s, was)
				put := s.put(name, was, next)
				if !s.sameRecords(next, put.Record) {
					s.Errorf("from %s to %s: the swap returned %s, and not %s", before.what, state.what, recordText(put.Record), recordText(next))
				}
				if seen := s.requireRecord(name, next); seen.Version != put.Version {
					s.Errorf("from %s to %s: the swap returned version %q, and a load %q", before.what, state.what, put.Version, seen.Version)
				}
			}
		})
	}},
	{"S1/an-ended-context-is-no-conflict-in-any-state", "a swap under a context that is done already was not applied if it says so, in any state", 0, func(p *tester) {
		s := p.store()
		ctx := s.doneContext()
		swap := func(what, name string, old lease.Snapshot) {
			s.Helper()
			next := s.leased(old, 100*s.D)
			_, err := s.Swap(ctx, name, old, next)
			applied := s.load(name).Record.ID == next.ID
			if err == nil && !applied || errors.Is(err, lease.ErrConflict) && applied {
				s.Errorf("%s: a swap under a done context says %v, and it was applied: %v", what, err, applied)
			}
		}
		s.eachState(func(name string, state recordState) { swap(state.what, name, s.putState(name, state)) })
		swap("absent", s.name+"/absent", s.load(s.name+"/absent"))
	}},
	{"S2/no-version-recurs-in-any-state", "records with one state and one epoch have versions of their own, whichever client wrote them", 0, func(p *tester) {
		s := p.store()
		clients := s.clients()
		s.eachState(func(name string, state recordState) {
			snap := s.load(name)
			seen := map[string]bool{snap.Version: true}
			one, other := state.twins(s, snap)
			for i, next := range []lease.Record{one, other, one, other, one, other} {
				c := clients[i/2%len(clients)]
				snap = c.put(name, c.load(name), next)
				if seen[snap.Version] {
					s.Fatalf("%s: version %q recurred", state.what, snap.Version)
				}
				seen[snap.Version] = true
			}
		})
	}},
	{"S4/time-never-decreases-in-any-state", "the store's time does not decrease from one answer to the next, whatever the state, and whichever client gets them", 0, func(p *tester) {
		s := p.store()
		clients := s.clients()
		if !s.can(CanTellTime) {
			clients = clients[:1] // only one client, because each has a clock of its own
		}
		last := s.load(s.name).Now
		later := func(what string, now time.Time) {
			s.Helper()
			if now.Before(last) {
				s.Errorf("%s: the time was %s, and is %s", what, timeText(last), timeText(now))
			}
			last = now
		}
		s.eachState(func(name string, state recordState) {
			for _, c := range clients {
				later("before "+state.what, c.load(name).Now)
				put := c.putState(name, state)
				later(state.what+", put", put.Now)
				later(state.what+", loaded", c.load(name).Now)
				later(state.what+", replaced", c.put(name, put, c.leased(put, 100*s.D)).Now)
				later("leased, loaded", c.load(name).Now)
			}
		})
	}},
	{"S8/no-load-is-stale-for-another-client-in-any-state", "a load that begins after the answer to another client's swap returns the new record, whatever the states before and after", hasAnother, func(p *tester) {
		s := p.store()
		both := s.clients()
		s.eachState(func(name string, state recordState) {
			for i := range 2 * len(states) {
				before := states[i/2]
				if !s.can(before.needs) {
					continue
				}
				writes, reads := both[i%2], both[1-i%2]
				name := fmt.Sprint(name, "/", i)
				first := writes.putState(name, before)
				_ = reads.requireRecord(name, first.Record)
				second := writes.put(name, first, state.record(writes, first))
				_ = reads.requireRecord(name, second.Record)
				_ = writes.requireRecord(name, second.Record)
			}
		})
	}},
	{"S10/another-client's-changes-are-listed", "a list by one client shows what another has changed since the list before, in any state", hasAnother | hasList, func(p *tester) {
		s := p.store()
		both := s.clients()
		s.eachState(func(name string, state recordState) { s.putState(name, state) })
		s.listsLocks(both[1])
		s.eachState(func(name string, _ recordState) {
			old := s.load(name)
			s.put(name, old, s.leased(old, 200*s.D))
		})
		s.listsLocks(both[1])
	}},
	{"S3/each-forgotten-state-raises-the-epoch", "the epoch of a name that is not known is no lower than the highest that was forgotten, in any order and in any state, also after the store was opened again", hasForget, func(p *tester) {
		s := p.store()
		after := s.forget()
		if 9*after > s.longestWait() && !s.Bubble {
			after = 0 // the store then deletes only records of available leases
		}
		epochs := map[string]uint64{}
		forget := func(name string, snap lease.Snapshot, next lease.Record, what string) {
			s.put(name, snap, next)
			if !next.ID.IsZero() { // without an ID, the rule cannot tell whether the store has deleted the record
				epochs[name] = next.Epoch
			}
			s.pass(2*after + s.Unit)
			s.forget()
			if seen := s.load(name).Record; seen.Epoch < next.Epoch {
				s.Errorf("%q had epoch %d, and has %d since the store was to forget it, %s", name, next.Epoch, seen.Epoch, what)
			}
			s.requireMinEpoch(epochs, ", "+what)
			if s.can(hasReopen) {
				s.reopen()
				s.requireMinEpoch(epochs, ", after the store was opened again")
			}
		}
		first := s.putLeased(s.name+"/first", 100*s.D+20*after)
		by := uint64(10)
		s.eachState(func(name string, state recordState) {
			if by *= 2; !state.record(s, lease.Snapshot{Now: time.Now()}).State.Locked() {
				snap := s.raiseEpoch(name, by)
				forget(name, snap, state.record(s, snap), state.what)
			}
		})
		released := first.Record
		released.State, released.Until = lease.Available, time.Time{}
		forget(s.name+"/first", first, released, "a lower epoch after higher ones")
	}},
}

// timeRules check the time of a store.
var timeRules = []rule{
	{"S4/time-never-decreases-at-a-conflict", "the time that comes with a conflict is not before one that came earlier", 0, func(p *tester) {
		s := p.store()
		for what, d := range map[string]time.Duration{"another version": 100 * s.D, "an end": s.D / 2} {
			old := s.putLeased(s.name, d)
			if d > s.D {
				s.put(s.name, old, s.leased(old, d))
			}
			s.pass(s.D/2 + s.Slack/4)
			last := s.load(s.name)
			snap, err := s.Swap(s.ctx, s.name, old, s.leased(last, s.D))
			if errors.Is(err, lease.ErrConflict) && snap.Version != "" && snap.Now.Before(last.Now) {
				s.Errorf("a load came at %s, and then a conflict because of %s at %s", timeText(last.Now), what, timeText(snap.Now))
			}
		}
	}},
	{"S4/time-passes", "the store's time passes as time does", 0, func(p *tester) {
		s := p.store()
		began, sent := s.load(s.name).Now, time.Now()
		if began.IsZero() {
			s.Fatalf("the store tells no time")
		}
		s.pass(s.D + time.Duration(s.rand.Int64N(int64(s.D))))
		passed := s.load(s.name).Now.Sub(began)
		if real := time.Since(sent); passed < real*9/10-s.Slack || passed > real*11/10+s.Slack {
			s.Errorf("%v passed, and %v by the store's time", real, passed)
		}
		if real := time.Since(sent); s.can(exactTime) && s.load(s.name).Now.Sub(began) != real {
			s.Errorf("Options.Slack is 0, so times are exact; %v passed, and %v by the store's time", real, passed)
		}
	}},
	{"S4/time-outlives-reopening", "the store's time does not decrease when it is opened again", hasReopen | CanTellTime, func(p *tester) {
		s := p.store()
		for range 3 {
			s.pass(s.Unit)
			last := s.putLeased(s.name, 100*s.D).Now
			s.reopen()
			if now := s.load(s.name).Now; now.Before(last) {
				s.Errorf("the time was %s, and is %s after it was opened again", last.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
			}
		}
	}},
	{"S4/time-never-decreases-though-the-clock-is-set-back", "when the clock of the store is set back, no answer has an earlier time than an answer before it, whatever its name", hasStepClock, func(p *tester) {
		s := p.store()
		stale := s.load(s.name)
		put := s.put(s.name, stale, s.leased(stale, 100*s.D))
		for _, back := range []time.Duration{1, s.Unit, s.D} {
			s.pass(s.Unit / 2)
			last := s.load(s.name).Now
			s.stepClock(-back)
			later := func(what string, now time.Time) {
				s.Helper()
				if now.Before(last) {
					s.Errorf("the clock was set back by %v; the time was %s, and %s has the time %s", back, timeText(last), what, timeText(now))
				}
			}
			later("a load", s.load(s.name).Now)
			later("a load of another name", s.load(fmt.Sprint(s.name, "/", back)).Now)
			if snap, err := s.Swap(s.ctx, s.name, stale, s.leased(put, s.D)); errors.Is(err, lease.ErrConflict) && snap.Version != "" {
				later("a conflict", snap.Now)
			}
			put = s.put(s.name, put, s.leased(put, 100*s.D))
			later("a swap", put.Now)
		}
	}},
	{"S4/no-time-before-the-record-after-a-restart", "if the clock is set back while the store is closed, no answer has a time before that on which its record was decided", hasStepClock | hasReopen | CanTellTime, func(p *tester) {
		s := p.store()
		put := s.putLeased(s.name, s.D)
		decided := put.Record.Until.Add(-s.D)
		s.stepClock(-s.D)
		s.reopen()
		seen := s.load(s.name)
		for what, now := range map[string]time.Time{"load": seen.Now, "swap": s.put(s.name, seen, put.Record).Now} {
			if now.Before(decided) {
				s.Errorf("the record was decided at %s, and a %s after the restart has the time %s", timeText(decided), what, timeText(now))
			}
		}
	}},
	{"S5/swap-conflicts-once-the-state-is-over", "a record that has come to its until since it was loaded cannot be swapped", CanTellTime, func(p *tester) {
		s := p.store()
		for _, state := range []lease.State{lease.Leased, lease.Breaking} {
			next := s.putAs(s.name, state, s.D/2).Record
			old := s.load(s.name)
			if !old.Record.At(old.Now).State.Locked() {
				s.Fatalf("it took more than %v from a swap to a load", s.D/2)
			}
			renewed := next
			renewed.State, renewed.Until = lease.Leased, old.Now.Round(0).UTC().Add(s.D)
			s.pass(next.Until.Sub(old.Now) + s.Slack/10)
			if _, err := s.Swap(s.ctx, s.name, old, renewed); !errors.Is(err, lease.ErrConflict) {
				s.Errorf("%v until %s, loaded at %s, swapped after that: %v", state, timeText(next.Until), timeText(old.Now), err)
			}
			s.requireRecord(s.name, next)
			// A new load and a swap of its snapshot must succeed after the conflict.
			old = s.load(s.name)
			s.put(s.name, old, s.leased(old, s.D))
		}
	}},
	{"S5/swap-commits-before-the-state-is-over", "a record that has not come to its until can be swapped", CanTellTime, func(p *tester) {
		s := p.store()
		put := s.putLeased(s.name, s.D)
		s.pass(s.D / 2)
		s.put(s.name, put, s.leased(put, s.D))
	}},
	{"S5/the-clock-of-the-store-ends-a-state", "whether a record has come to its until is decided by the clock of the store, and not by that of the process that swaps", hasStepClock | CanTellTime, func(p *tester) {
		s := p.store()
		old := s.putLeased(s.name, s.D)
		s.stepClock(-4 * s.D)
		s.pass(s.D + s.Slack) // meanwhile the time of the store stands still
		if seen := s.load(s.name); seen.Now.Before(old.Record.Until) {
			s.put(s.name, old, s.leased(seen, s.D))
		} else {
			s.Errorf("the clock of the store was set back by %v, and %v later its time is %s, after %s", 4*s.D, s.D+s.Slack, timeText(seen.Now), timeText(old.Now))
		}
		s.stepClock(8 * s.D)
		old = s.putLeased(s.name, s.D)
		s.stepClock(2 * s.D) // the process does not notice this step of the clock
		if _, err := s.Swap(s.ctx, s.name, old, s.leased(old, s.D)); !errors.Is(err, lease.ErrConflict) {
			s.Errorf("the clock of the store moved past %s, and then a swap of what was loaded before: %v", timeText(old.Record.Until), err)
		}
		if seen := s.load(s.name); seen.Record.At(seen.Now).State.Locked() {
			s.Errorf("after its end the store shows %s at %s", recordText(seen.Record), timeText(seen.Now))
		}
	}},
	{"S5/the-store's-authority-goes-by-the-clock-of-the-store", "the store's own authority decides and lists by the clock of the store, and not by that of its process", hasStepClock | hasAuthority | CanTellTime, func(p *tester) {
		s := p.store()
		a := s.bare.(authorityMaker).Authority()
		grant := func() error {
			_, err := a.Do(s.ctx, s.name, acquire(s.id(), s.D))
			s.history.printf("the authority of the store: acquire: %v", err)
			return err
		}
		s.need(grant(), "acquire")
		s.stepClock(-4 * s.D)
		s.pass(s.D + s.Slack) // meanwhile the time of the store stands still
		s.listsByClock(a, true)
		if err := grant(); lease.CodeOf(err) != lease.ErrHeldByOther {
			s.Errorf("the clock of the store was set back, so that the lease has not ended, and an acquire by another: %v", err)
		}
		s.stepClock(8 * s.D)
		s.listsByClock(a, false)
		for range 2 {
			s.need(grant(), "acquire after the clock of the store moved past the end of the lease before")
			s.stepClock(2 * s.D) // the process does not notice this step of the clock
			s.listsByClock(a, false)
		}
	}},
	{"S5/reopening-restarts-no-duration", "a lease that is over is over after the store was opened again, and one that runs ends when it would have", hasReopen | CanTellTime, func(p *tester) {
		s := p.store()
		put := s.putLeased(s.name, 2*s.D)
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
