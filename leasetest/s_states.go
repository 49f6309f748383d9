package leasetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// twins returns two records in the given state with the same epoch. Their owners differ if the
// state has an ID. Otherwise the records are equal.
func (state stateOf) twins(s storeProbe, on lease.Snapshot) (one, other lease.Record) {
	one = state.record(s, on)
	if other = one; !one.ID.IsZero() {
		other.Owner = "another"
	}
	return one, other
}

// storeStateRules check a store with every state of a record.
var storeStateRules = []rule{
	{"S1/swap-commits-in-every-state", "a swap commits the record that it was given, from every state to every state, and returns it", 0, func(p *probe) {
		s := p.store()
		s.eachState(func(name string, state stateOf) {
			for _, before := range states {
				if !s.can(before.needs) {
					continue
				}
				name := name + "/" + before.what
				was := s.put(name, s.raiseEpoch(name, 9), before.record(s, s.load(name)))
				next := state.record(s, was)
				put := s.put(name, was, next)
				if !s.sameRecords(put.Record, next) {
					s.Errorf("from %s to %s: the swap returned %s, and not %s", before.what, state.what, recordText(put.Record), recordText(next))
				}
				if seen := s.requireRecord(name, next); seen.Version != put.Version {
					s.Errorf("from %s to %s: the swap returned version %q, and a load %q", before.what, state.what, put.Version, seen.Version)
				}
			}
		})
	}},
	{"S1/an-ended-context-is-no-conflict-in-any-state", "a swap under a context that is done already was not applied if it says so, in any state", 0, func(p *probe) {
		s := p.store()
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		s.eachState(func(name string, state stateOf) {
			old := s.put(name, s.load(name), state.record(s, s.load(name)))
			next := s.leased(old, 100*s.D)
			_, err := s.Swap(ctx, name, old, next)
			applied := s.load(name).Record.ID == next.ID
			if err == nil && !applied || errors.Is(err, lease.ErrConflict) && applied {
				s.Errorf("%s: a swap under a done context says %v, and it was applied: %v", state.what, err, applied)
			}
		})
		absent := s.load(s.name + "/absent")
		next := s.leased(absent, 100*s.D)
		_, err := s.Swap(ctx, s.name+"/absent", absent, next)
		if applied := s.load(s.name+"/absent").Record.ID == next.ID; err == nil && !applied || errors.Is(err, lease.ErrConflict) && applied {
			s.Errorf("absent: a swap under a done context says %v, and it was applied: %v", err, applied)
		}
	}},
	{"S2/no-version-recurs-in-any-state", "records with one state and one epoch have versions of their own", 0, func(p *probe) {
		s := p.store()
		s.eachState(func(name string, state stateOf) {
			snap := s.load(name)
			seen := map[string]bool{snap.Version: true}
			one, other := state.twins(s, snap)
			for _, next := range []lease.Record{one, other, one, other} {
				snap = s.put(name, snap, next)
				if seen[snap.Version] {
					s.Fatalf("%s: version %q recurred", state.what, snap.Version)
				}
				seen[snap.Version] = true
			}
		})
	}},
	{"S4/time-never-decreases-in-any-state", "the store's time does not decrease from one answer to the next, whatever the state", 0, func(p *probe) {
		s := p.store()
		last := s.load(s.name).Now
		later := func(what string, now time.Time) {
			s.Helper()
			if now.Before(last) {
				s.Errorf("%s: the time was %s, and is %s", what, timeText(last), timeText(now))
			}
			last = now
		}
		s.eachState(func(name string, state stateOf) {
			later("absent", s.load(name).Now)
			put := s.put(name, s.load(name), state.record(s, s.load(name)))
			later(state.what+", put", put.Now)
			later(state.what+", loaded", s.load(name).Now)
			later(state.what+", replaced", s.put(name, put, s.leased(put, 100*s.D)).Now)
			later("leased, loaded", s.load(name).Now)
		})
	}},
	{"S8/no-load-is-stale-for-another-client-in-any-state", "a load that begins after the answer to another client's swap returns the new record, whatever the states before and after", hasAnother, func(p *probe) {
		s := p.store()
		both := s.twoClients()
		s.eachState(func(name string, state stateOf) {
			for i := range 2 * len(states) {
				before := states[i/2]
				if !s.can(before.needs) {
					continue
				}
				writes, reads := both[i%2], both[1-i%2]
				name := fmt.Sprint(name, "/", i)
				first := writes.put(name, writes.load(name), before.record(writes, writes.load(name)))
				_ = reads.requireRecord(name, first.Record)
				second := writes.put(name, first, state.record(writes, first))
				_ = reads.requireRecord(name, second.Record)
				_ = writes.requireRecord(name, second.Record)
			}
		})
	}},
	{"S2/versions-of-two-clients-never-recur", "no two states of a name have the same version, whichever client wrote them", hasAnother, func(p *probe) {
		s := p.store()
		both := s.twoClients()
		s.eachState(func(name string, state stateOf) {
			seen := map[string]bool{}
			for i := range 8 {
				c := both[i/2%2]
				put := c.put(name, c.load(name), state.record(s, c.load(name)))
				if seen[put.Version] {
					s.Fatalf("%s: version %q recurred", state.what, put.Version)
				}
				seen[put.Version] = true
			}
		})
	}},
	{"S10/another-client-lists-what-is-held", "a list by one client shows every lock that another has written", hasAnother | hasList, func(p *probe) {
		s := p.store()
		both := s.twoClients()
		_ = s.list(both[1].bare, s.name)
		s.eachState(func(name string, state stateOf) { s.put(name, s.load(name), state.record(s, s.load(name))) })
		s.listsLocks(both[1])
	}},
	{"S3/each-forgotten-state-raises-the-epoch", "the epoch of a name that is not known is no lower than that of a record that was forgotten, in any state that may be forgotten", hasForget, func(p *probe) {
		s := p.store()
		after := s.forget()
		if after > s.D && !s.Bubble {
			s.Skip("the store states that it remembers records for longer than a test may last")
		}
		by := uint64(10)
		s.eachState(func(name string, state stateOf) {
			if by *= 2; state.record(s, lease.Snapshot{Now: time.Now()}).State.Locked() {
				return
			}
			epochs := map[string]uint64{}
			for i := range 3 {
				name := fmt.Sprint(name, "/", i)
				snap := s.raiseEpoch(name, by)
				next := state.record(s, snap)
				epochs[name] = s.put(name, snap, next).Record.Epoch
			}
			s.pass(2*after + s.Unit)
			s.forget()
			if state.what == "forgotten ID" { // the test cannot detect whether the store still knows this name
				return
			}
			s.unknownNamesBeginAt(s.forgottenNames(epochs), ", "+state.what)
		})
	}},
}
