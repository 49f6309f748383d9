package leasetest

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// keepRules check that a store does not forget records and epochs too early.
var keepRules = []rule{
	{"S3/reopening-keeps-what-was-acknowledged", "every acknowledged record is still there after the store was opened again", hasReopen, func(p *probe) {
		s := p.store()
		put := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		s.reopen()
		seen := s.requireRecord(s.name, put.Record)
		s.put(s.name, seen, s.leased(seen, 100*s.D))
	}},
	{"S3/epoch-outlives-release", "an available record keeps its epoch", 0, func(p *probe) {
		s := p.store()
		snap := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		released := lease.Record{Epoch: snap.Record.Epoch}
		s.put(s.name, snap, released)
		if seen := s.load(s.name); seen.Record.Epoch < released.Epoch {
			s.Errorf("the epoch was %d, and is %d after the release", released.Epoch, seen.Record.Epoch)
		}
	}},
	{"S3/epoch-outlives-forgetting", "the epoch of an unknown name is at least as high as every epoch of a forgotten name", hasForget, func(p *probe) {
		s := p.store()
		snap := s.load(s.name)
		for range 7 {
			snap = s.put(s.name, snap, s.leased(snap, 100*s.D))
		}
		highest := snap.Record.Epoch
		s.put(s.name, snap, lease.Record{Epoch: highest})
		s.forget()
		for _, name := range []string{s.name, s.name + "/never-used"} {
			if seen := s.load(name); seen.Record.Epoch < highest {
				s.Errorf("epoch %d was granted under a name that was forgotten, and %q begins at %d", highest, name, seen.Record.Epoch)
			}
		}
	}},
	{"S3/epoch-outlives-idleness", "a record that was not used for a long time keeps its epoch, or is forgotten without letting epochs fall", 0, func(p *probe) {
		s := p.store()
		ended := s.put(s.name+"/ended", s.load(s.name+"/ended"), s.leased(s.load(s.name+"/ended"), s.Unit))
		released := s.put(s.name+"/released", s.load(s.name+"/released"), s.leased(s.load(s.name+"/released"), 100*s.D))
		s.put(s.name+"/released", released, lease.Record{Epoch: released.Record.Epoch})
		s.pass(s.idleTime())
		for name, epoch := range map[string]uint64{s.name + "/ended": ended.Record.Epoch, s.name + "/released": released.Record.Epoch} {
			if seen := s.load(name); seen.Record.Epoch < epoch {
				s.Errorf("after %v the epoch of %q is %d, and was %d", s.idleTime(), name, seen.Record.Epoch, epoch)
			}
		}
	}},
	{"S9/what-is-locked-is-never-forgotten", "a leased and a breaking record are not forgotten", hasForget, func(p *probe) {
		s := p.store()
		leased := s.leased(s.load(s.name+"/leased"), 100*s.D)
		s.put(s.name+"/leased", s.load(s.name+"/leased"), leased)
		breaking := s.leased(s.load(s.name+"/breaking"), 100*s.D)
		breaking.State = lease.Breaking
		s.put(s.name+"/breaking", s.load(s.name+"/breaking"), breaking)
		infinite := s.leased(s.load(s.name+"/infinite"), lease.Infinite)
		if s.can(CanBeInfinite) {
			s.put(s.name+"/infinite", s.load(s.name+"/infinite"), infinite)
		}
		s.forget()
		s.requireRecord(s.name+"/leased", leased)
		s.requireRecord(s.name+"/breaking", breaking)
		if s.can(CanBeInfinite) {
			s.requireRecord(s.name+"/infinite", infinite)
		}
	}},
	{"S9/what-may-be-renewed-is-kept-for-the-stated-time", "an expired and a broken record are remembered for the time that the store states", hasForget, func(p *probe) {
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
			name := s.name + "/" + state.String()
			next := s.leased(s.load(name), s.Unit)
			if next.State = state; !state.Locked() {
				next.Until = time.Time{}
			}
			s.put(name, s.load(name), next)
			put[state] = next
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
		s.pass(s.Unit + min(after/2, time.Hour))
		s.forget()
		keeps(ending)
	}},
}

// idleTime returns a time after which an implementation might forget an unused record.
func (p *probe) idleTime() time.Duration {
	if p.Bubble {
		return 400 * 24 * time.Hour
	}
	return 2 * p.D
}
