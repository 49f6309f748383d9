package leasetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// nameRules check names in a store.
var nameRules = []rule{
	{"S6/clients-at-once-keep-names-apart", "a swap under one name undoes none that another client makes under another", hasAnother, func(p *tester) {
		s := p.store()
		both := s.clients()
		s.increment(both, s.name+"/a", s.name+"/b")
	}},
	{"S6/different-names-are-different-leases", "two names never share a record, also after the store was opened again; a name that cannot be kept is refused", 0, func(p *tester) {
		s := p.store()
		put := map[string]lease.Record{}
		for _, pair := range similarNames {
			for _, name := range []string{pair.a, pair.b} { // an earlier run of this rule may have used these names
				// A store may refuse a name that it cannot represent.
				if snap, err := s.Load(s.ctx, name); err == nil && put[name].ID.IsZero() {
					next := s.leased(snap, 100*s.D)
					if _, err := s.swap(name, snap, next); err == nil {
						put[name] = next
					}
				}
			}
		}
		for range 2 {
			for name, r := range put {
				s.requireRecord(name, r)
			}
			if !s.can(hasReopen) {
				return
			}
			s.reopen()
		}
	}},
	{"S6/hostile-names-are-refused", "a name that is empty, too long, not UTF-8 or has a NUL in it is refused", 0, func(p *tester) {
		s := p.store()
		for _, h := range badNames {
			snap, err := s.Load(s.ctx, h.name)
			if err == nil {
				_, err = s.swap(h.name, snap, s.leased(snap, 100*s.D))
			}
			if err == nil {
				s.Errorf("%s: the store took the name %s", h.what, nameText(h.name))
			}
			p.refuseWatch(s.bare, h.what, h.name)
		}
	}},
}

// authorityNameRules check names at an authority.
var authorityNameRules = []rule{
	{"S6/different-names-are-different-leases", "two names never share a lease; a name that cannot be kept is refused", 0, func(p *tester) {
		a := p.authority()
		for i, pair := range similarNames {
			// Both names get a random prefix, unless a name would become too long.
			first, second := fmt.Sprintf("%x.%d.%s", p.rand.Uint32(), i, pair.a), ""
			if n := len(first) - len(pair.a); len(first) <= fields.MaxLabel && len(pair.b)+n <= fields.MaxLabel {
				second = first[:n] + pair.b
			} else {
				first, second = pair.a, pair.b
			}
			one, two := p.id(), p.id()
			if _, err := a.Do(p.ctx, first, acquire(one, p.D)); err != nil {
				continue
			}
			if _, err := a.Do(p.ctx, second, acquire(two, p.D)); lease.CodeOf(err) == lease.ErrHeldByOther {
				p.Errorf("%s: %.80q is held because %.80q is", pair.what, second, first)
			}
			_, _ = a.Do(p.ctx, first, release(one))
			_, _ = a.Do(p.ctx, second, release(two))
		}
	}},
}

// similarNames contains pairs of different names that a store might confuse.
var similarNames = []struct{ what, a, b string }{
	{"case", "jobs/Nightly", "jobs/nightly"},
	{"separators", "a-b|c", "a|b-c"},
	{"illegal characters", "a_b", "a.b"},
	{"a slash", "a/b", "a_b"},
	{"an escape", "a%2Fb", "a/b"},
	{"a dot and a slash", "a.b", "a/b"},
	{"a colon and a slash", "a:b", "a/b"},
	{"a backslash and a slash", "a\\b", "a/b"},
	{"a hyphen and an underscore", "a-b", "a_b"},
	{"a plus sign and a space", "a+b", "a b"},
	{"the case of an escape", "a%2fb", "a%2Fb"},
	{"two escapes", "a%252Fb", "a%2Fb"},
	{"combining marks", "caf\u00e9", "cafe"},
	{"combining marks by themselves", "cafe\u0301", "cafe"},
	{"two letters for one", "stra\u00dfe", "strasse"},
	{"the Turkish i", "\u0130", "i"},
	{"full width", "\uff41", "a"},
	{"a space that does not break", "a\u00a0b", "a b"},
	{"a tab", "a\tb", "a b"},
	{"a direction mark", "a\u200e", "a"},
	{"a variation selector", "a\ufe0f", "a"},
	{"zeros in front", "a01", "a1"},
	{"a trailing separator", "a", "a/"},
	{"a leading separator", "/a", "a"},
	{"doubled separators", "a//b", "a/b"},
	{"dots", "a/./b", "a/b"},
	{"dots upward", "a/../b", "b"},
	{"a trailing dot", "a.", "a"},
	{"white space", " a", "a"},
	{"white space behind", "a ", "a"},
	{"a line break", "a\n", "a"},
	{"unicode normal forms", "caf\u00e9", "cafe\u0301"},
	{"compatibility forms", "\ufb01le", "file"},
	{"letters that look alike", "\u0430", "a"},
	{"case without ASCII", "\u00c4", "\u00e4"},
	{"the Kelvin sign", "\u212a", "k"},
	{"invisible characters", "a\u200bb", "ab"},
	{"a wildcard", "a%", "ab"},
	{"another wildcard", "a*", "ab"},
	{"a quote", "a'", "a"},
	{"characters of four bytes", "a\U0001F600", "a\U0001F601"},
	{"a character of four bytes, and a question mark", "a\U0001F600", "a?"},
	{"a character of four bytes, and the replacement character", "a\U0001F600", "a\ufffd"},
	{"a character of four bytes at the end", "a\U0001F600", "a"},
	{"what is after the 100th byte", strings.Repeat("n", 100) + "a", strings.Repeat("n", 100) + "b"},
	{"what is after the 127th byte", strings.Repeat("n", 127) + "a", strings.Repeat("n", 127) + "b"},
	{"what is after the 191st byte", strings.Repeat("n", 191) + "a", strings.Repeat("n", 191) + "b"},
	{"what is after the 240th byte", strings.Repeat("n", 240) + "a", strings.Repeat("n", 240) + "b"},
	{"what is after the 512th byte", strings.Repeat("n", 512) + "a", strings.Repeat("n", 512) + "b"},
	{"what is after the 767th byte", strings.Repeat("n", 767) + "a", strings.Repeat("n", 767) + "b"},
	{"the middle of a long name", strings.Repeat("n", 500) + "a" + strings.Repeat("n", 500), strings.Repeat("n", 500) + "b" + strings.Repeat("n", 500)},
	{"what is after the 63rd byte", strings.Repeat("n", 63) + "a", strings.Repeat("n", 63) + "b"},
	{"what is after the 255th byte", strings.Repeat("n", 255) + "a", strings.Repeat("n", 255) + "b"},
	{"the last of 1024 bytes", strings.Repeat("n", fields.MaxLabel-1) + "a", strings.Repeat("n", fields.MaxLabel-1) + "b"},
	{"a CRC of 32 bits", "plumless", "buckeroo"},
	{"a hash of 32 bits", "jobs/Aa", "jobs/BB"}, // String.hashCode of Java
	{"a name and its beginning", strings.Repeat("n", 63), strings.Repeat("n", 64)},
}

// refuseWatch requires that v, if it has a method Watch, refuses the name with the code lease.ErrName.
func (p *tester) refuseWatch(v any, what, name string) {
	p.Helper()
	w, ok := v.(lease.Watcher)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	if _, err := w.Watch(ctx, name); lease.CodeOf(err) != lease.ErrName {
		p.Errorf("%s: a watch of the name %s: %v", what, nameText(name), err)
	}
}

// badNames are names that a lease must not have.
var badNames = []struct{ what, name string }{
	{"the empty one", ""},
	{"a NUL", "a\x00b"},
	{"a NUL after a character that is not ASCII", "\u00fc\x00b"},
	{"a byte that is not UTF-8", "a\xffb"},
	{"half a surrogate pair", "a\xed\xa0\x80b"},
	{"1025 bytes", strings.Repeat("n", fields.MaxLabel+1)},
	{"1026 bytes in 513 characters", strings.Repeat("\u00fc", fields.MaxLabel/2+1)},
	{"1026 bytes in 342 characters", strings.Repeat("\u79df", fields.MaxLabel/3+1)},
	{"a megabyte", strings.Repeat("n", 1<<20)},
}

// listRules check the lists of a store.
var listRules = []rule{
	{"S10/everything-held-is-listed-once", "a list shows every leased and breaking record once, as a load shows it, and no other name", hasList, func(p *tester) {
		s := p.store()
		held := map[string]lease.Record{}
		for i, d := range []time.Duration{100 * s.D, 100 * s.D, 200 * s.D, lease.Infinite} {
			name, state := fmt.Sprint(s.name, "/", i), lease.Leased
			switch {
			case i == 1 && s.can(CanBreak):
				state = lease.Breaking
			case d == lease.Infinite && !s.can(CanBeInfinite):
				continue
			}
			held[name] = s.putAs(name, state, d).Record
		}
		_ = s.load(s.name + "/never-leased")
		released := s.putLeased(s.name+"/released", 100*s.D)
		s.put(s.name+"/released", released, lease.Record{Epoch: released.Record.Epoch})
		for range 2 {
			for _, prefix := range []string{s.name + "/", s.name, ""} {
				entries := s.list(s.bare, prefix)
				for name, r := range held {
					if e, ok := entries[name]; !ok || !s.sameRecords(e.Record, r) {
						s.Errorf("the list of %q shows %q as %s, and it is %s", prefix, name, recordText(e.Record), recordText(r))
					}
				}
				if e := entries[s.name+"/released"]; e.Record.State.Locked() {
					s.Errorf("what is released is listed as %s", recordText(e.Record))
				}
				for name, e := range entries {
					if _, ok := held[name]; !ok && strings.HasPrefix(name, s.name+"/") && e.Record.State.Locked() {
						s.Errorf("%q is listed as %s, and no holder has leased it", name, recordText(e.Record))
					}
				}
			}
		}
	}},
	{"S10/a-long-list-shows-every-lease", "a list of many leases shows each of them once, though names before them come and go meanwhile", hasList, func(p *tester) {
		s := p.store()
		many, workers := 150, 8 // more than a page of 100
		if s.Bubble {
			many = 1200 // more than a page of 1000
		}
		quiet := storeTester{p, s.bare, s.bare} // its calls are not recorded, because they would fill the history
		s.callConcurrently(workers, func(worker int) {
			for i := worker; i < many && !s.Failed(); i += workers {
				name := fmt.Sprintf("%s/%04d", s.name, i)
				if _, err := quiet.swapAmongOthers(name); err != nil {
					s.Errorf("lease number %d: %v", i, err)
				}
			}
		})
		first := s.name + "/!" // sorts before all other names
		s.putLeased(first, 100*s.D)
		listed := map[string]int{}
		for e, err := range s.listed(s.bare, s.name+"/") {
			s.need(err, "list")
			if len(listed) == 0 {
				snap := s.load(first)
				s.put(first, snap, lease.Record{Epoch: snap.Record.Epoch})
				for i := range 3 {
					s.putLeased(fmt.Sprintf("%s%d", first, i), 100*s.D)
				}
			}
			if e.Record.State.Locked() {
				listed[e.Name]++
			}
		}
		for i := range many {
			if name := fmt.Sprintf("%s/%04d", s.name, i); listed[name] != 1 {
				s.Fatalf("of %d leases %d are listed, and %q is listed %d times", many, len(listed), name, listed[name])
			}
		}
	}},
	{"S10/a-prefix-is-a-prefix", "a list shows the names that begin with the prefix, byte for byte, and no other name", hasList, func(p *tester) {
		s := p.store()
		var names []string
		long := strings.Repeat("n", 300)
		// One name contains two of the prefixes, but does not begin with them. In some names, a part begins
		// with a dot, because many tools hide such files.
		for _, end := range []string{"a", "A", "ab", "b", "a%b", "a_b", "axb", "a*", "a?", `a\`, `a\b`, "a'b", "a.b", "a/b", "[ab]", "^a", "a$", "\u00e4", "\u00e4b", "\U0010ffff", "\U0010ffffb", "c/" + s.name + "/a",
			"a/", "a//b", "a/b/c", ".a", "a/.b", "a/.b/c", "..", "a/..b", "_a", "a/_b", "-a", "~a", " a", long + "a", long + "b"} {
			name := s.name + "/" + end
			snap, err := s.Load(s.ctx, name)
			if err != nil {
				continue // the store cannot represent this name
			}
			if _, err := s.swap(name, snap, s.leased(snap, 100*s.D)); err == nil {
				names = append(names, name)
			}
		}
		s.putLeased(s.name+"X", 100*s.D)
		names = append(names, s.name+"X")
		prefixes := []string{s.name + "/", s.name + "/x", s.name + "/" + long[:200]}
		for _, name := range names {
			prefixes = append(prefixes, name, name+"/", name+".")
		}
		for _, prefix := range prefixes {
			if len(prefix) > fields.MaxLabel {
				continue
			}
			entries := s.list(s.bare, prefix)
			for _, name := range names {
				if _, ok := entries[name]; ok != strings.HasPrefix(name, prefix) {
					s.Errorf("the list of %q shows %q: %v", prefix, name, ok)
				}
			}
		}
	}},
	{"S10/what-is-over-is-not-listed-as-held", "an entry contains the record as it is at the time of the entry", hasList, func(p *tester) {
		s := p.store()
		name := s.name + "/ends"
		put := s.putLeased(name, s.Unit)
		held := s.list(s.bare, s.name+"/")[name]
		if held.Record.State.Locked() && s.can(CanTellTime) && held.Now.Before(put.Now) {
			s.Errorf("the swap was committed at %s, and the list tells the time %s", timeText(put.Now), timeText(held.Now))
		}
		s.pass(s.Unit + s.Slack)
		if e, ok := s.list(s.bare, s.name+"/")[name]; ok && e.Record.State.Locked() {
			s.Errorf("what was leased for %v is listed as %s at %s", s.Unit, recordText(e.Record), timeText(e.Now))
		}
	}},
	{"S4/time-never-decreases-in-a-list", "the time of an entry is neither before that of an answer before the list nor after that of an answer after it", hasList | CanTellTime, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) { s.putState(name, state) })
		s.pass(s.Unit)
		before := s.load(s.name).Now
		entries := s.list(s.bare, s.name)
		after := s.load(s.name).Now
		for name, e := range entries {
			if e.Now.Before(before) || e.Now.After(after) {
				s.Errorf("%q is listed at %s, between loads at %s and %s", name, timeText(e.Now), timeText(before), timeText(after))
			}
		}
	}},
	{"S10/a-list-goes-by-the-clock-of-the-store", "whether an entry is over is decided by the clock of the store, and not by that of the process that lists", hasList | hasStepClock | CanTellTime, func(p *tester) {
		s := p.store()
		s.putLeased(s.name, s.D)
		s.stepClock(-4 * s.D)
		s.pass(s.D + s.Slack) // meanwhile the time of the store stands still
		s.listsByClock(s.bare, true)
		s.stepClock(8 * s.D)
		s.putLeased(s.name, s.D)
		s.stepClock(2 * s.D) // the process does not notice this step of the clock
		s.listsByClock(s.bare, false)
	}},
	{"S10/a-list-under-way-shows-what-was-true", "an entry of a lease that was renewed, taken or made infinite while the list was under way is the record before or after that, and no state between, at a time at which it was true", hasList | exactTime, func(p *tester) {
		s := p.store()
		allowed := map[string][]lease.Record{} // the records that the list may show for each name
		changed := map[string]lease.Snapshot{} // the last snapshot of each changed name
		for i := range 6 {
			name := fmt.Sprint(s.name, "/", i)
			allowed[name] = []lease.Record{s.putLeased(name, s.D).Record}
		}
		first := true
		for e, err := range s.listed(s.bare, s.name+"/") {
			s.need(err, "list")
			if !slices.Contains(allowed[e.Name], e.Record) {
				s.Errorf("%q is listed as %s, and during the list it was one of %v", e.Name, recordText(e.Record), slices.Collect(func(yield func(string) bool) {
					for _, r := range allowed[e.Name] {
						if !yield(recordText(r)) {
							return
						}
					}
				}))
			}
			if c := changed[e.Name]; e.Record == c.Record && e.Now.Before(c.Now.Add(-c.Uncertainty)) {
				s.Errorf("%q is listed at %s as %s, and it became that at %s", e.Name, timeText(e.Now), recordText(e.Record), timeText(c.Now))
			}
			if !first {
				continue
			}
			first = false
			p.pass(s.D * 3 / 4)
			for i := range 6 {
				name := fmt.Sprint(s.name, "/", i)
				snap := s.load(name)
				next := snap.Record
				switch i % 3 {
				case 0: // the lease was renewed
					next.Until = snap.Now.Round(0).UTC().Add(s.D)
				case 1: // another holder has acquired the lease
					next = s.leased(snap, 100*s.D)
				case 2:
					if s.can(CanBeInfinite) {
						next.Duration, next.Until = lease.Infinite, time.Time{}
					} else {
						next.Until = snap.Now.Round(0).UTC().Add(2 * s.D)
					}
				}
				changed[name] = s.put(name, snap, next)
				allowed[name] = append(allowed[name], changed[name].Record)
			}
			p.pass(s.D / 2) // the previous records end during this pause
		}
		if first {
			s.Errorf("the list of %q is empty", s.name+"/")
		}
	}},
	{"S10/a-list-ends-with-its-context", "a list whose context is done ends with an error that names no lease, and does not pass for a list of nothing", hasList, func(p *tester) {
		s := p.store()
		const many = 10
		for i := range many {
			name := fmt.Sprint(s.name, "/", i)
			s.putLeased(name, 100*s.D)
		}
		p.endListsByContext(s.bare, many)
	}},
	{"S10/a-loop-may-end-the-list", "a loop that ends before the list gets no further entry, and a second use of the sequence is a new list", hasList, func(p *tester) {
		s := p.store()
		for i := range 3 {
			name := fmt.Sprint(s.name, "/", i)
			s.putLeased(name, 100*s.D)
		}
		all := s.listed(s.bare, s.name+"/")
		for round := range 2 {
			left := false
			all(func(_ lease.Entry, err error) bool {
				s.need(err, "list")
				if left {
					s.Errorf("the list goes on after the loop has ended")
				}
				left = true
				return false
			})
			if !left {
				s.Errorf("use %d of the sequence shows nothing", round+1)
			}
		}
		name := s.name + "/late"
		s.putLeased(name, 100*s.D)
		seen := false
		for e, err := range all {
			s.need(err, "list")
			seen = seen || e.Name == name
		}
		if !seen {
			s.Errorf("a use of the sequence does not show what was leased since the one before")
		}
	}},
	{"S10/a-corrupt-record-is-an-error-of-its-own", "a record that cannot be read is an error beside the name of its lease, and the list goes on", hasList | hasCorrupt, func(p *tester) {
		s := p.store()
		for _, end := range []string{"a", "b", "c"} {
			s.putLeased(s.name+"/"+end, 100*s.D)
		}
		s.history.printf("the test corrupts the record of %q", s.name+"/b")
		s.Options.Store.Corrupt(s.tester.TB, s.bare, s.name+"/b")
		p.listsCorrupt(s.bare)
	}},
	{"S10/bad-prefixes-are-refused", "a prefix that is neither empty nor a name is an error", hasList, func(p *tester) {
		p.refuseBadPrefixes(p.store().bare)
	}},
}

// If v is a Lister, the method listsByClock lists the lease. The parameter locked says whether the list must
// show the lease as locked. The method also loads the record before and after it calls List. The time in the
// entry of the list must lie between the times of these two loads.
func (s storeTester) listsByClock(v any, locked bool) {
	s.Helper()
	if _, ok := v.(lease.Lister); !ok {
		return
	}
	before := s.load(s.name).Now
	e, known := s.list(v, s.name)[s.name]
	after := s.load(s.name).Now
	if e.Record.State.Locked() != locked {
		s.Errorf("the list shows %s at %s, and by the clock of the store the lease is locked: %v", recordText(e.Record), timeText(e.Now), locked)
	}
	if known && (e.Now.Before(before) || e.Now.After(after)) {
		s.Errorf("the list tells the time %s, and loads before and after it %s and %s", timeText(e.Now), timeText(before), timeText(after))
	}
}

// authorityListRules check the lists of an authority.
var authorityListRules = []rule{
	{"S10/everything-held-is-listed-once", "the list of an authority shows every lease that is held, as a read shows it", hasList, func(p *tester) {
		a := p.authority()
		held := map[string]lease.ID{}
		for i := range 5 {
			name := fmt.Sprint(a.name, "/", i)
			held[name] = p.id()
			a.mustGrant(name, acquire(held[name], a.D))
		}
		if p.can(CanBreak) {
			a.mustGrant(a.name+"/0", lease.Request{Action: lease.ActionBreak})
		}
		a.mustGrant(a.name+"/4", release(held[a.name+"/4"]))
		delete(held, a.name+"/4")
		for _, prefix := range []string{a.name + "/", ""} {
			before := a.read(a.name)
			entries := p.list(a.bare, prefix)
			for _, name := range slices.Sorted(maps.Keys(held)) {
				res := a.read(name)
				e, ok := entries[name]
				// Reading a long list can take longer than the duration of a lease, so the lease may have
				// ended between its list entry and the read.
				over := e.Record.ID == res.Record.ID && e.Record.Epoch == res.Record.Epoch && !res.Now.Before(e.Record.Until)
				if p.can(CanTellTime) && ok && e.Now.Before(before.Now) {
					p.Errorf("a read came at %s, and then %q is listed at %s", timeText(before.Now), name, timeText(e.Now))
				}
				if !ok || p.can(CanShowRecords) && !p.sameRecords(e.Record, res.Record) && !over {
					p.Errorf("the list of %q shows %q as %s, and it is %s", prefix, name, recordText(e.Record), recordText(res.Record))
				}
			}
			if e := entries[a.name+"/4"]; e.Record.State.Locked() {
				p.Errorf("what is released is listed as %s", recordText(e.Record))
			}
		}
		p.pass(p.D + p.Slack)
		for name, e := range p.list(a.bare, a.name+"/") {
			if e.Record.State.Locked() {
				p.Errorf("%q was leased for %v and is then listed as %s", name, p.D, recordText(e.Record))
			}
		}
	}},
	{"S10/a-list-ends-with-its-context", "the list of an authority whose context is done ends with an error that names no lease, and does not pass for a list of nothing", hasList, func(p *tester) {
		a := p.authority()
		d := a.D
		if p.can(CanBeInfinite) {
			d = lease.Infinite
		}
		began := time.Now()
		const many = 10
		for i := range many {
			a.mustGrant(fmt.Sprint(a.name, "/", i), acquire(p.id(), d))
		}
		if d == lease.Infinite || time.Since(began) < d/2 { // otherwise a lease might end before it is listed
			p.endListsByContext(a.bare, many)
		}
	}},
	{"S10/bad-prefixes-are-refused", "a prefix that is neither empty nor a name is an error in the list of an authority, too", hasList, func(p *tester) {
		p.refuseBadPrefixes(p.authority().bare)
	}},
	{"M9/a-list-forgets-nothing", "a list changes no lease, in whatever state, and an expired one can be renewed after it", hasList, func(p *tester) {
		a := p.authority()
		before := map[string]lease.Record{}
		var expired []string
		ids := map[string]lease.ID{}
		a.eachState(func(name string, id lease.ID, s authorityState) {
			res := a.read(name)
			if s.state == lease.Available && res.Record.ID.IsZero() {
				return // an unknown name has no ID, and its epoch may rise without a grant
			}
			before[name], ids[name] = res.Record, id
			if s.state == lease.Expired {
				expired = append(expired, name)
			}
		})
		_ = p.list(a.bare, a.name+"/")
		for name, r := range before {
			a.requireRecord(name, r, "after a list")
		}
		for _, name := range expired {
			a.mustGrant(name, renew(ids[name]))
		}
	}},
	{"S10/a-corrupt-record-is-an-error-of-its-own", "in the list of an authority a record that cannot be read is an error beside the name of its lease, and the list goes on", hasList | hasCorruptAuthority, func(p *tester) {
		a := p.authority()
		for _, end := range []string{"a", "b", "c"} {
			a.mustGrant(p.name+"/"+end, acquire(p.id(), p.D))
		}
		a.corrupt(p.name + "/b")
		p.listsCorrupt(a.bare)
	}},
	{"S10/a-list-keeps-the-limits", "the list of an authority shows a record that claims more than the limits as a read shows it", hasPut | hasList | CanShowRecords | exactTime, func(p *tester) {
		a := p.authority()
		for i, c := range p.excessiveRecords() {
			name := fmt.Sprint(p.name, "/", i)
			res := a.read(name)
			r := c.Record
			r.Until = res.Now.Add(c.claims)
			p.history.printf("== the record of %q becomes %s, %s", name, outcomeText(r, nil), c.what)
			p.Options.Authority.Put(p.TB, a.bare, name, r)
			shown := p.list(a.bare, p.name+"/")[name].Record
			res = a.read(name)
			if shown != res.Record {
				p.Errorf("%s: the list shows %s, and a read %s", c.what, recordText(shown), recordText(res.Record))
			}
		}
	}},
}

// endListsByContext makes two long lists. It ends the context of one list before the first entry, and the
// context of the other list after the first entry. Each list must then show all leases, or end with an error
// that is not about a single lease.
func (p *tester) endListsByContext(listed any, many int) {
	p.Helper()
	for _, after := range []int{0, 1} {
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		if after == 0 {
			cancel()
		}
		entries, failed := 0, false
		for e, err := range p.lister(listed).List(ctx, p.name+"/") {
			if failed {
				p.Errorf("the list goes on with %q after an error that names no lease", e.Name)
			}
			if err == nil {
				entries++
			} else if e.Name == "" {
				failed = true
			}
			if entries == after {
				cancel()
			}
		}
		if !failed && entries < many {
			p.Errorf("the context ended after %d entries, and the list ended after %d of %d without an error", after, entries, many)
		}
	}
}

// refuseBadPrefixes requires that a list of each bad prefix ends with an error that names no lease.
func (p *tester) refuseBadPrefixes(listed any) {
	p.Helper()
	for _, h := range badNames {
		if h.name == "" {
			continue
		}
		refused := false
		for e, err := range p.listed(listed, h.name) {
			refused = err != nil && e.Name == ""
		}
		if !refused {
			p.Errorf("%s: the prefix %s is not refused", h.what, nameText(h.name))
		}
	}
}

// listsCorrupt requires that a list shows the leases a and c, and an error for b, whose record is corrupt.
func (p *tester) listsCorrupt(listed any) {
	p.Helper()
	shown := map[string]error{}
	for e, err := range p.listed(listed, p.name+"/") {
		shown[e.Name] = err
		if err != nil && e.Record != (lease.Record{}) {
			p.Errorf("beside the error %q stands %s", err, recordText(e.Record))
		}
	}
	if err, ok := shown[p.name+"/b"]; !ok || err == nil {
		p.Errorf("a name whose record cannot be read is not listed with an error: %v, %v", ok, err)
	}
	for _, end := range []string{"a", "c"} {
		if err, ok := shown[p.name+"/"+end]; !ok || err != nil {
			p.Errorf("beside a name whose record cannot be read, %q is listed: %v, %v", end, ok, err)
		}
	}
}

func (p *tester) lister(listed any) lease.Lister {
	p.Helper()
	return listed.(lease.Lister)
}

// The method listed wraps the method List of a Lister. The wrapper records all entries in the history.
func (p *tester) listed(listed any, prefix string) func(yield func(lease.Entry, error) bool) {
	p.Helper()
	l := p.lister(listed)
	return func(yield func(lease.Entry, error) bool) {
		p.history.printf("list %s", nameText(prefix))
		// A range loop would panic if List calls yield again after yield has returned false.
		l.List(p.ctx, prefix)(func(e lease.Entry, err error) bool {
			if strings.HasPrefix(e.Name, p.name) { // the store may contain leases of other rules
				p.history.printf("listed %s at %s: %s", nameText(e.Name), timeText(e.Now), outcomeText(e.Record, err))
			}
			return yield(e, err)
		})
	}
}

// list returns the entries of a list by name. The list must not fail, and must list the leases of this rule
// without errors. Each name must begin with the prefix and occur only once, and each record must show its
// state at the time of the entry.
func (p *tester) list(listed any, prefix string) map[string]lease.Entry {
	p.Helper()
	entries := map[string]lease.Entry{}
	for e, err := range p.listed(listed, prefix) {
		if err != nil && (e.Name == "" || strings.HasPrefix(e.Name, p.name)) {
			p.Fatalf("the list of %q has the error %v beside %q", prefix, err, e.Name)
		}
		if _, again := entries[e.Name]; again {
			p.Errorf("the list of %q shows %q twice", prefix, e.Name)
		}
		if !strings.HasPrefix(e.Name, prefix) {
			p.Errorf("the list of %q shows %q", prefix, e.Name)
		}
		shown := e.Record
		if !p.can(CanShowRecords) && shown.State != lease.Available && shown.ID.IsZero() {
			shown.ID, shown.Epoch = p.id(), max(1, shown.Epoch) // the authority does not return these fields, so fill them for Validate
		}
		if invalid := shown.Validate(); err == nil && (invalid != nil || e.Record != e.Record.At(e.Now)) {
			p.Errorf("at %s the list of %q shows %q as %s: %v", timeText(e.Now), prefix, e.Name, recordText(e.Record), invalid)
		}
		entries[e.Name] = e
	}
	return entries
}
