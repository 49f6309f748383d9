package leasetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// listRules check the lists of a store.
var listRules = []rule{
	{"S10/everything-held-is-listed-once", "a list shows every leased and breaking record once, as a load shows it, and no other name", hasList, func(p *probe) {
		s := p.store()
		held := map[string]lease.Record{}
		for i, d := range []time.Duration{100 * s.D, 100 * s.D, 200 * s.D, lease.Infinite} {
			name := fmt.Sprint(s.name, "/", i)
			next := s.leased(s.load(name), d)
			switch {
			case i == 1 && s.can(CanBreak):
				next.State = lease.Breaking
			case d == lease.Infinite && !s.can(CanBeInfinite):
				continue
			}
			held[name] = s.put(name, s.load(name), next).Record
		}
		_ = s.load(s.name + "/never-leased")
		released := s.put(s.name+"/released", s.load(s.name+"/released"), s.leased(s.load(s.name+"/released"), 100*s.D))
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
	{"S10/a-prefix-is-a-prefix", "a list shows the names that begin with the prefix, byte for byte, and no other name", hasList, func(p *probe) {
		s := p.store()
		var names []string
		for _, end := range []string{"a", "A", "ab", "b", "a%b", "a_b", "axb", "a*", "a?", `a\`, `a\b`, "a'b", "a.b", "a/b", "[ab]", "^a", "a$", "\u00e4", "\u00e4b", "\U0010ffff", "\U0010ffffb"} {
			name := s.name + "/" + end
			snap, err := s.Load(s.ctx, name)
			if err != nil {
				continue // the store cannot keep this name
			}
			if _, err := s.swap(name, snap, s.leased(snap, 100*s.D)); err == nil {
				names = append(names, name)
			}
		}
		for _, prefix := range append(names, s.name+"/", s.name+"/x") {
			entries := s.list(s.bare, prefix)
			for _, name := range names {
				if _, ok := entries[name]; ok != strings.HasPrefix(name, prefix) {
					s.Errorf("the list of %q shows %q: %v", prefix, name, ok)
				}
			}
		}
	}},
	{"S10/what-is-over-is-not-listed-as-held", "an entry contains the record as it is at the time of the entry", hasList, func(p *probe) {
		s := p.store()
		name := s.name + "/ends"
		put := s.put(name, s.load(name), s.leased(s.load(name), s.Unit))
		held := s.list(s.bare, s.name+"/")[name]
		if held.Record.State.Locked() && s.can(CanTellTime) && held.Now.Before(put.Now) {
			s.Errorf("the swap was committed at %s, and the list tells the time %s", timeText(put.Now), timeText(held.Now))
		}
		s.pass(s.Unit + s.Slack)
		if e, ok := s.list(s.bare, s.name+"/")[name]; ok && e.Record.State.Locked() {
			s.Errorf("what was leased for %v is listed as %s at %s", s.Unit, recordText(e.Record), timeText(e.Now))
		}
	}},
	{"S10/a-list-under-way-misses-nothing", "what is held from the beginning of a list to its end is listed once, though other leases come and go, and it is renewed", hasList, func(p *probe) {
		s := p.store()
		const kept = 24
		for i := range kept {
			for _, name := range []string{fmt.Sprintf("%s/%02d", s.name, 2*i), fmt.Sprintf("%s/%02d", s.name, 2*i+1)} {
				s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
			}
		}
		gone, shown := 0, map[string]int{}
		for e, err := range s.listed(s.bare, s.name+"/") {
			s.need(err, "list")
			shown[e.Name]++
			if gone < kept { // release names from the beginning of the list
				name := fmt.Sprintf("%s/%02d", s.name, 2*gone+1)
				snap := s.load(name)
				s.put(name, snap, lease.Record{Epoch: snap.Record.Epoch})
				if gone%3 == 0 {
					name = fmt.Sprintf("%s/%02d/new", s.name, gone)
					s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
				}
				name = fmt.Sprintf("%s/%02d", s.name, 2*(kept-1-gone))
				s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
				gone++
			}
		}
		for i := range kept {
			if name := fmt.Sprintf("%s/%02d", s.name, 2*i); shown[name] != 1 {
				s.Errorf("%q is listed %d times", name, shown[name])
			}
		}
		for name, n := range shown {
			if n > 1 {
				s.Errorf("%q is listed %d times", name, n)
			}
		}
	}},
	{"S10/a-list-ends-with-its-context", "a list whose context is done ends with an error that names no lease, and does not pass for a list of nothing", hasList, func(p *probe) {
		s := p.store()
		const many = 10
		for i := range many {
			name := fmt.Sprint(s.name, "/", i)
			s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
		}
		for _, after := range []int{0, 1} {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			if after == 0 {
				cancel()
			}
			entries, failed := 0, false
			for e, err := range s.lister(s.bare).List(ctx, s.name+"/") {
				if failed {
					s.Errorf("the list goes on with %q after an error that names no lease", e.Name)
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
				s.Errorf("the context ended after %d entries, and the list ended after %d of %d without an error", after, entries, many)
			}
		}
	}},
	{"S10/a-loop-may-end-the-list", "a loop that ends before the list gets no further entry, and a second use of the sequence is a new list", hasList, func(p *probe) {
		s := p.store()
		for i := range 3 {
			name := fmt.Sprint(s.name, "/", i)
			s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
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
		s.put(name, s.load(name), s.leased(s.load(name), 100*s.D))
		seen := false
		for e, err := range all {
			s.need(err, "list")
			seen = seen || e.Name == name
		}
		if !seen {
			s.Errorf("a use of the sequence does not show what was leased since the one before")
		}
	}},
	{"S10/a-corrupt-record-is-an-error-of-its-own", "a record that cannot be read is an error beside the name of its lease, and the list goes on", hasList | hasCorrupt, func(p *probe) {
		s := p.store()
		for _, end := range []string{"a", "b", "c"} {
			s.put(s.name+"/"+end, s.load(s.name+"/"+end), s.leased(s.load(s.name+"/"+end), 100*s.D))
		}
		s.history.printf("the test corrupts the record of %q", s.name+"/b")
		s.Options.Corrupt(s.probe.TB, s.bare, s.name+"/b")
		shown := map[string]error{}
		for e, err := range s.listed(s.bare, s.name+"/") {
			shown[e.Name] = err
			if err != nil && e.Record != (lease.Record{}) {
				s.Errorf("beside the error %q stands %s", err, recordText(e.Record))
			}
		}
		if err, ok := shown[s.name+"/b"]; !ok || err == nil {
			s.Errorf("what is no record is listed: %v, %v", ok, err)
		}
		for _, end := range []string{"a", "c"} {
			if err, ok := shown[s.name+"/"+end]; !ok || err != nil {
				s.Errorf("beside what is no record, %q is listed: %v, %v", end, ok, err)
			}
		}
	}},
	{"S10/bad-prefixes-are-refused", "a prefix that is neither empty nor a name is an error", hasList, func(p *probe) {
		s := p.store()
		for _, h := range badNames {
			if h.name == "" {
				continue
			}
			refused := false
			for e, err := range s.listed(s.bare, h.name) {
				refused = err != nil && e.Name == ""
			}
			if !refused {
				s.Errorf("%s: the store lists the prefix %.40q", h.what, h.name)
			}
		}
	}},
}

// authorityListRules check the lists of an authority.
var authorityListRules = []rule{
	{"S10/everything-held-is-listed-once", "the list of an authority shows every lease that is held, as a read shows it", hasList, func(p *probe) {
		a := p.authority()
		held := map[string]lease.ID{}
		for i := range 5 {
			name := fmt.Sprint(a.name, "/", i)
			held[name] = p.id()
			_, err := a.Do(a.ctx, name, acquire(held[name], a.D))
			p.need(err, "acquire")
		}
		if p.can(CanBreak) {
			_, err := a.Do(a.ctx, a.name+"/0", lease.Request{Action: lease.ActionBreak})
			p.need(err, "break")
		}
		_, err := a.Do(a.ctx, a.name+"/4", release(held[a.name+"/4"]))
		p.need(err, "release")
		delete(held, a.name+"/4")
		for _, prefix := range []string{a.name + "/", ""} {
			entries := p.list(a.bare, prefix)
			for _, name := range slices.Sorted(maps.Keys(held)) {
				res, err := lease.Inspect(a.ctx, a, name)
				p.need(err, "read")
				e, ok := entries[name]
				// The lease may have ended between the two answers, because a long list takes
				// longer than a lease lasts.
				over := e.Record.ID == res.Record.ID && e.Record.Epoch == res.Record.Epoch && !res.Now.Before(e.Record.Until)
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
}

func (p *probe) lister(listed any) lease.Lister {
	p.Helper()
	return listed.(lease.Lister)
}

// listed lists the leases whose names begin with prefix. It records the entries of this rule in the
// history.
func (p *probe) listed(listed any, prefix string) func(yield func(lease.Entry, error) bool) {
	p.Helper()
	l := p.lister(listed)
	return func(yield func(lease.Entry, error) bool) {
		p.history.printf("list %.40q", prefix)
		// A range loop would panic if List called yield again after yield has returned false.
		l.List(p.ctx, prefix)(func(e lease.Entry, err error) bool {
			if strings.HasPrefix(e.Name, p.name) { // the store may contain leases of other rules
				p.history.printf("listed %.40q at %s: %s", e.Name, timeText(e.Now), outcomeText(e.Record, err))
			}
			return yield(e, err)
		})
	}
}

// list returns the entries of a list by name. The list must contain no error for a lease of this
// rule, and no name twice. A lease that has ended by the time of its entry must be listed as
// expired or broken, and not as locked.
func (p *probe) list(listed any, prefix string) map[string]lease.Entry {
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
			shown.ID, shown.Epoch = p.id(), max(1, shown.Epoch) // the authority does not return these fields
		}
		if invalid := shown.Validate(); err == nil && (invalid != nil || e.Record != e.Record.At(e.Now)) {
			p.Errorf("at %s the list of %q shows %q as %s: %v", timeText(e.Now), prefix, e.Name, recordText(e.Record), invalid)
		}
		entries[e.Name] = e
	}
	return entries
}
