package leasetest

import (
	"errors"

	"github.com/fencedlease/lease"
)

// shareRules are of two clients of one store, either of which may be first.
var shareRules = []rule{
	{"S8/no-load-is-stale-for-another-client", "a load that begins after another client's swap was answered shows it", hasAnother, func(p *probe) {
		s := p.store()
		both := s.both()
		for i := range 20 {
			writes, reads := both[i%2], both[1-i%2]
			_ = reads.load(s.name) // it has seen the one before
			put := writes.put(s.name, writes.load(s.name), writes.leased(writes.load(s.name), 100*s.D))
			if seen := reads.shows(s.name, put.Record); seen.Version != put.Version {
				s.Errorf("one client committed version %q, and another loads %q", put.Version, seen.Version)
			}
		}
	}},
	{"S1/another-client's-swap-conflicts", "a swap of a version that another client has replaced is a conflict, and certainly not applied", hasAnother, func(p *probe) {
		s := p.store()
		both := s.both()
		for i := range 6 {
			first, second := both[i%2], both[1-i%2]
			old := second.load(s.name)
			put := first.put(s.name, first.load(s.name), first.leased(old, 100*s.D))
			if _, err := second.Swap(s.ctx, s.name, old, second.leased(old, 100*s.D)); !errors.Is(err, lease.ErrConflict) {
				s.Errorf("a swap of what another client has replaced: %v", err)
			}
			second.shows(s.name, put.Record)
		}
	}},
	{"S1/clients-at-once-lose-no-update", "what a swap committed is what the next one starts from, whichever client makes it", hasAnother, func(p *probe) {
		s := p.store()
		both := s.both()
		s.increment(both[:], s.name)
	}},
	{"S6/clients-at-once-keep-names-apart", "a swap under one name undoes none that another client makes under another", hasAnother, func(p *probe) {
		s := p.store()
		both := s.both()
		s.increment(both[:], s.name+"/a", s.name+"/b")
	}},
	{"S7/another-client's-change-signals", "a change by one client is signalled to the watch of another", hasAnother | hasWatch, func(p *probe) {
		s := p.store()
		both := s.both()
		for i := range both {
			writes, reads := both[i], both[1-i]
			snap := writes.put(s.name, writes.load(s.name), writes.leased(writes.load(s.name), 100*s.D))
			watch := reads.beginWatch(s.ctx, reads.bare, s.name)
			for range 3 {
				watch.ready()
				snap = writes.put(s.name, snap, writes.leased(snap, 100*s.D))
				if !watch.signalsChange() {
					s.Fatalf("another client's change was not signalled")
				}
			}
			watch.requireSignal()
		}
	}},
	{"S4/clients-have-one-time", "the store's time does not decrease from an answer to one client to an answer to another", hasAnother | CanTellTime, func(p *probe) {
		s := p.store()
		both := s.both()
		for i := range 20 {
			put := both[i%2].put(s.name, both[i%2].load(s.name), s.leased(both[i%2].load(s.name), 100*s.D))
			if seen := both[1-i%2].load(s.name); seen.Now.Before(put.Now) {
				s.Errorf("one client was told %s, and then another %s", timeText(put.Now), timeText(seen.Now))
			}
		}
	}},
}

// both returns the store as two clients have it.
func (s storeProbe) both() [2]storeProbe {
	s.Helper()
	other := s.Options.Another(s.probe.TB, s.bare)
	s.made(other, "Options.Another")
	return [2]storeProbe{s, {s.probe, s.history.store(other), other}}
}
