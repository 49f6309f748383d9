package leasetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// timeRules check the time of a store.
var timeRules = []rule{
	{"S4/clients-have-one-time", "the store's time does not decrease from an answer to one client to an answer to another", hasAnother | CanTellTime, func(p *probe) {
		s := p.store()
		both := s.twoClients()
		for i := range 20 {
			put := both[i%2].put(s.name, both[i%2].load(s.name), s.leased(both[i%2].load(s.name), 100*s.D))
			if seen := both[1-i%2].load(s.name); seen.Now.Before(put.Now) {
				s.Errorf("one client got the time %s, and then another %s", timeText(put.Now), timeText(seen.Now))
			}
		}
	}},
	{"S4/time-never-decreases", "the store's time does not decrease from one answer to the next", 0, func(p *probe) {
		s := p.store()
		s.together(4, func(i int) {
			var last time.Time
			for range 20 {
				old, err := s.Load(s.ctx, s.name)
				if err != nil {
					s.Errorf("load: %v", err)
					return
				}
				snap, err := s.Swap(s.ctx, s.name, old, s.leased(old, 100*s.D))
				if err != nil && !errors.Is(err, lease.ErrConflict) {
					s.Errorf("swap: %v", err)
					return
				}
				if snap.Version == "" {
					snap = old // the conflict came without a snapshot
				}
				if old.Now.Before(last) || snap.Now.Before(old.Now) {
					s.Errorf("the time was %s, then %s, then %s", timeText(last), timeText(old.Now), timeText(snap.Now))
				}
				last = snap.Now
			}
		})
	}},
	{"S4/time-never-decreases-at-a-conflict", "the time that comes with a conflict is not before one that came earlier", 0, func(p *probe) {
		s := p.store()
		for what, d := range map[string]time.Duration{"another version": 100 * s.D, "an end": s.D / 2} {
			old := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), d))
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
	{"S4/time-passes", "the store's time passes as time does", 0, func(p *probe) {
		s := p.store()
		began, sent := s.load(s.name).Now, time.Now()
		if began.IsZero() {
			s.Fatalf("the store tells no time")
		}
		s.pass(s.D)
		passed := s.load(s.name).Now.Sub(began)
		if real := time.Since(sent); passed < s.D*9/10 || passed > real*11/10+s.Slack {
			s.Errorf("%v passed, and %v by the store's time", real, passed)
		}
	}},
	{"S4/no-time-before-the-record", "the time that comes with a record is not before the one on which the record was decided", 0, func(p *probe) {
		s := p.store()
		old := s.load(s.name)
		for range 20 {
			next := s.leased(old, s.D)
			decided := next.Until.Add(-s.D)
			if put := s.put(s.name, old, next); put.Now.Before(decided) {
				s.Errorf("decided at %s, committed at %s", timeText(decided), timeText(put.Now))
			}
			if old = s.load(s.name); s.can(CanTellTime) && old.Now.Before(decided) {
				s.Errorf("decided at %s, loaded at %s", timeText(decided), timeText(old.Now))
			}
		}
		if !s.can(CanTellTime) {
			return
		}
		var done atomic.Bool
		s.together(3, func(i int) {
			if i == 0 {
				defer done.Store(true)
				for range 40 {
					s.Sleep(s.Unit / 10000)
					var err error
					if old, err = s.swap(s.name, old, s.leased(old, s.D)); err != nil {
						s.Errorf("swap by the only writer: %v", err)
						return
					}
				}
				return
			}
			for n := 0; !done.Load(); n++ {
				s.pauseNowAndThen(n)
				if seen, err := s.Load(s.ctx, s.name); err != nil || seen.Now.Before(seen.Record.Until.Add(-s.D)) {
					s.Errorf("decided at %s, loaded at %s: %v", timeText(seen.Record.Until.Add(-s.D)), timeText(seen.Now), err)
					return
				}
			}
		})
	}},
	{"S4/time-outlives-reopening", "the store's time does not decrease when it is opened again", hasReopen | CanTellTime, func(p *probe) {
		s := p.store()
		for range 3 {
			s.pass(s.Unit)
			last := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D)).Now
			s.reopen()
			if now := s.load(s.name).Now; now.Before(last) {
				s.Errorf("the time was %s, and is %s after it was opened again", last.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
			}
		}
	}},
	{"S5/swap-conflicts-once-the-state-is-over", "a record that has come to its until since it was loaded cannot be swapped", CanTellTime, func(p *probe) {
		s := p.store()
		for _, state := range []lease.State{lease.Leased, lease.Breaking} {
			next := s.leased(s.load(s.name), s.D/2)
			next.State = state
			s.put(s.name, s.load(s.name), next)
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
			// After the conflict, a new load and a swap of its snapshot must succeed.
			old = s.load(s.name)
			s.put(s.name, old, s.leased(old, s.D))
		}
	}},
	{"S5/swap-commits-before-the-state-is-over", "a record that has not come to its until can be swapped", CanTellTime, func(p *probe) {
		s := p.store()
		put := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), s.D))
		s.pass(s.D / 2)
		s.put(s.name, put, s.leased(put, s.D))
	}},
}
