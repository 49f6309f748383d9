package leasetest

import (
	"fmt"
	"strings"

	"github.com/fencedlease/lease"
)

// nameRules check names in a store.
var nameRules = []rule{
	{"S6/clients-at-once-keep-names-apart", "a swap under one name undoes none that another client makes under another", hasAnother, func(p *probe) {
		s := p.store()
		both := s.twoClients()
		s.increment(both[:], s.name+"/a", s.name+"/b")
	}},
	{"S6/different-names-are-different-leases", "two names never share a record; a name that cannot be kept is refused", 0, func(p *probe) {
		s := p.store()
		for _, pair := range similarNames {
			a, err := s.Load(s.ctx, pair.a)
			if err != nil {
				continue // the store refuses this name
			}
			if _, err = s.Load(s.ctx, pair.b); err != nil {
				continue
			}
			mine := s.leased(a, 100*s.D)
			if _, err := s.swap(pair.a, a, mine); err != nil {
				continue
			}
			s.requireRecord(pair.a, mine)
			if b := s.load(pair.b); b.Record.ID == mine.ID {
				s.Errorf("%s: what is leased as %.80q is leased as %.80q too", pair.what, pair.a, pair.b)
			}
		}
	}},
	{"S6/names-are-independent", "a swap under one name changes nothing under another", 0, func(p *probe) {
		s := p.store()
		a, b := s.load(s.name+"/a"), s.load(s.name+"/b")
		mine, yours := s.leased(a, 100*s.D), s.leased(b, 100*s.D)
		s.put(s.name+"/a", a, mine)
		s.put(s.name+"/b", b, yours)
		s.requireRecord(s.name+"/a", mine)
		s.requireRecord(s.name+"/b", yours)
		s.increment([]storeProbe{s}, s.name+"/a", s.name+"/b")
	}},
	{"S6/hostile-names-are-refused", "a name that is empty, too long, not UTF-8 or has a NUL in it is refused", 0, func(p *probe) {
		s := p.store()
		for _, h := range badNames {
			snap, err := s.Load(s.ctx, h.name)
			if err == nil {
				_, err = s.swap(h.name, snap, s.leased(snap, 100*s.D))
			}
			if err == nil {
				s.Errorf("%s: the store took the name %.40q", h.what, h.name)
			}
		}
	}},
}

// authorityNameRules check names at an authority.
var authorityNameRules = []rule{
	{"S6/different-names-are-different-leases", "two names never share a lease; a name that cannot be kept is refused", 0, func(p *probe) {
		a := p.authority()
		for i, pair := range similarNames {
			// Add a random prefix to both names, if neither becomes too long.
			first, second := fmt.Sprintf("%x.%d.%s", p.rand.Uint32(), i, pair.a), ""
			if n := len(first) - len(pair.a); len(first) <= lease.MaxLabel && len(pair.b)+n <= lease.MaxLabel {
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

// similarNames are pairs of different names that a backend might confuse.
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
	{"what is after the 100th byte", strings.Repeat("n", 100) + "a", strings.Repeat("n", 100) + "b"},
	{"what is after the 127th byte", strings.Repeat("n", 127) + "a", strings.Repeat("n", 127) + "b"},
	{"what is after the 191st byte", strings.Repeat("n", 191) + "a", strings.Repeat("n", 191) + "b"},
	{"what is after the 240th byte", strings.Repeat("n", 240) + "a", strings.Repeat("n", 240) + "b"},
	{"what is after the 512th byte", strings.Repeat("n", 512) + "a", strings.Repeat("n", 512) + "b"},
	{"what is after the 767th byte", strings.Repeat("n", 767) + "a", strings.Repeat("n", 767) + "b"},
	{"the middle of a long name", strings.Repeat("n", 500) + "a" + strings.Repeat("n", 500), strings.Repeat("n", 500) + "b" + strings.Repeat("n", 500)},
	{"what is after the 63rd byte", strings.Repeat("n", 63) + "a", strings.Repeat("n", 63) + "b"},
	{"what is after the 255th byte", strings.Repeat("n", 255) + "a", strings.Repeat("n", 255) + "b"},
	{"the last of 1024 bytes", strings.Repeat("n", lease.MaxLabel-1) + "a", strings.Repeat("n", lease.MaxLabel-1) + "b"},
	{"a CRC of 32 bits", "plumless", "buckeroo"},
	{"a hash of 32 bits", "jobs/Aa", "jobs/BB"}, // String.hashCode of Java
	{"a name and its beginning", strings.Repeat("n", 63), strings.Repeat("n", 64)},
}

// badNames are names that a lease must not have.
var badNames = []struct{ what, name string }{
	{"the empty one", ""},
	{"a NUL", "a\x00b"},
	{"a byte that is not UTF-8", "a\xffb"},
	{"half a surrogate pair", "a\xed\xa0\x80b"},
	{"1025 bytes", strings.Repeat("n", lease.MaxLabel+1)},
	{"a megabyte", strings.Repeat("n", 1<<20)},
}
