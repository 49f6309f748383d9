package leasetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A namedBug is a bug and the rule that must find it.
type namedBug struct {
	bug   string
	suite func() *suite
	rule  string
}

// cellNamed returns the suite with the bug of that cell.
func cellNamed(name string) func() *suite {
	all := cellBugs()
	i := slices.IndexFunc(all, func(b cellBug) bool { return b.name() == name })
	if i < 0 {
		panic("there is no bug " + name)
	}
	return all[i].suite
}

// storeWith returns a suite over stores that reopening and forgetting change as f says. It gets the store
// after the event, and its floor before.
func storeWith(reopened, forgotten func(s *plainStore, floor uint64)) func() *suite {
	return func() *suite {
		s := plainStores("")
		s.options.Store.Reopen = func(t testing.TB, of lease.Store) lease.Store {
			was := of.(*plainStore)
			next := was.reopen(t, of).(*plainStore)
			if reopened != nil {
				reopened(next, was.floor)
			}
			return next
		}
		s.options.Store.Forget = func(t testing.TB, of lease.Store) time.Duration {
			was := of.(*plainStore)
			floor := was.floor
			after := was.forget(t, of)
			if forgotten != nil {
				forgotten(was, floor)
			}
			return after
		}
		return s
	}
}

// authorityWith returns a suite over authorities with a bug.
func authorityWith(bug authorityBug) func() *suite {
	return func() *suite { return wrappedAuthorities(bug) }
}

// afterwards changes the record that a granted request leaves.
func afterwards(f func(c *asked, r *lease.Record)) authorityBug {
	return func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if err == nil {
			a.edit(c.name, func(r *lease.Record) { f(c, r); res.Record = r.At(res.Now) })
		}
		return res, err
	}
}

// missedBugs are bugs that an earlier form of the suite let pass.
var missedBugs = []namedBug{
	{"reopening loses released records", cellNamed("store/released x reopen/is lost"), "S3/reopening-keeps-every-state"},
	{"reopening loses expired records", cellNamed("store/expired x reopen/is lost"), "S3/reopening-keeps-every-state"},
	{"reopening loses broken records", cellNamed("store/broken x reopen/is lost"), "S3/reopening-keeps-every-state"},
	{"reopening loses infinite records", cellNamed("store/infinite x reopen/is lost"), "S3/reopening-keeps-every-state"},
	{"reopening restarts durations", cellNamed("store/leased x reopen/restarts its duration"), "S5/reopening-restarts-no-duration"},
	{"reopening restarts epochs", cellNamed("store/released x reopen/loses its epoch"), "S3/reopening-lowers-no-epoch"},
	{"the floor of epochs is in memory only", storeWith(func(s *plainStore, _ uint64) { s.floor = 0 }, nil), "S3/forgotten-epochs-outlive-reopening"},
	{"the floor ignores expired records", cellNamed("store/expired x forget/is forgotten without its epoch"), "S3/each-forgotten-state-raises-the-epoch"},
	{"the floor ignores broken records", cellNamed("store/broken x forget/is forgotten without its epoch"), "S3/each-forgotten-state-raises-the-epoch"},
	{"the floor is what was forgotten last", lastFloor, "S3/the-highest-forgotten-epoch-counts"},
	{"the version of an absence recurs after reopening", storeWith(func(s *plainStore, _ uint64) { s.absent = 0 }, nil), "S2/an-absence-has-a-new-version-after-reopening"},
	{"a stale swap after forgetting inserts", storeWith(nil, func(s *plainStore, _ uint64) { s.absent = 0 }), "S1/stale-swap-conflicts-after-forgetting"},
	{"a second change takes the pending signal back", func() *suite { return plainStores("a later change takes the signal back") }, "S7/a-change-after-unread-ones-is-signalled"},
	{"a change of the owner alone is not signalled", func() *suite { return plainStores("signals no other owner") }, "S7/change-signals"},
	{"renewals have no bound", cellNamed("holder/renew/has no bound"), "H11/every-renewal-has-a-bound"},
	{"releases have no bound", cellNamed("holder/release/has no bound"), "H17/every-release-has-a-bound"},
	{"a release is sent under a done context", cellNamed("holder/release/is sent under a done context"), "H2/no-request-under-a-done-context"},
	{"an authority forgets an idle released lease", authorityWith(func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		a.mu.Lock()
		if r := a.records[c.name]; r.State == lease.Available && time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) > 24*time.Hour {
			delete(a.records, c.name)
		}
		a.mu.Unlock()
		return c.do()
	}), "M4/tokens-outlive-idleness-in-every-state"},
	{"a change to the same ID sets the owner", authorityWith(afterwards(func(c *asked, r *lease.Record) {
		if c.req.Action == lease.ActionChange && c.req.Proposed == c.was.ID && c.req.Owner != "" {
			r.Owner = c.req.Owner
		}
	})), "M10/edges-Change,-(A)-to-(A)-on-leased"},
	{"a renewal takes the owner of the request", authorityWith(afterwards(func(c *asked, r *lease.Record) {
		if c.req.Action == lease.ActionRenew && c.req.Owner != "" {
			r.Owner = c.req.Owner
		}
	})), "M8/edges-Renew-(A)-with-arguments-that-are-not-its-own-on-leased"},
	{"in the old dialect, broken and then released forgets the ID", authorityWith(afterwards(func(c *asked, r *lease.Record) {
		if c.req.Action == lease.ActionRelease && c.req.Version != 0 && c.was.State == lease.Broken {
			*r = lease.Record{Epoch: r.Epoch}
		}
	})), "M17/before-2012-02-12-what-was-broken-and-then-released-counts-as-released"},
	{"in the old dialect, a released lease is released again", authorityWith(func(a *wrappedAuthority, c *asked) (lease.Result, error) {
		res, err := c.do()
		if c.req.Action == lease.ActionRelease && c.req.Version != 0 && c.req.ID == c.was.ID {
			err = nil
		}
		return res, err
	}), "M17/before-2012-02-12-what-was-broken-and-then-released-counts-as-released"},
	{"a corrupt record is written", func() *suite { return plainStores("writes what is corrupt") }, "R2/a-corrupt-record-is-not-written"},
	{"a dot and a slash are one", namesAs(func(name string) string { return strings.ReplaceAll(name, ".", "/") }), "S6/different-names-are-different-leases"},
	{"combining marks are dropped", namesAs(func(name string) string { return strings.NewReplacer("\u00e9", "e", "\u0301", "").Replace(name) }), "S6/different-names-are-different-leases"},
	{"what follows a character of four bytes is dropped", namesAs(func(name string) string {
		if i := strings.IndexFunc(name, func(r rune) bool { return r > 0xffff }); i >= 0 {
			return name[:i]
		}
		return name
	}), "S6/different-names-are-different-leases"},
	{"the tokens of a refusal are swapped", func() *suite {
		swapped := func(_ *plainGuard, seen, tok lease.Token, do func() error) error {
			if err := do(); err == nil || tok.Validate() != nil {
				return err
			}
			return &fencing.StaleError{Shown: seen, Seen: tok}
		}
		return wrappedGuards(func(g *wrappedGuard) { g.do, g.advance = swapped, swapped })
	}, "G5/a-refusal-names-both-tokens"},
	{"a lease of more than a century is infinite", authorityWith(afterwards(func(c *asked, r *lease.Record) {
		if r.State == lease.Leased && r.Duration > 100*365*24*time.Hour {
			r.Duration, r.Until = lease.Infinite, time.Time{}
		}
	})), "M13/a-lease-may-last-for-two-hundred-years"},
}

// lastFloor is a suite over stores in which the epoch of a name that is not known is the one that was
// forgotten last.
func lastFloor() *suite {
	return storeWith(nil, func(s *plainStore, floor uint64) {
		if s.gone > 0 {
			s.floor = s.gone
		} else {
			s.floor = floor
		}
	})()
}

// namesAs is a suite over stores that keep names in another form.
func namesAs(key func(string) string) func() *suite {
	return func() *suite {
		s := plainStores("")
		s.newStore = func(testing.TB) lease.Store {
			store := newPlainStore("")
			store.form = key
			return store
		}
		return s
	}
}

// Each bug that an earlier form of the suite let pass, and each new rule's own bug, is found by the rule
// that is named.
func TestMissedBugsAreFound(t *testing.T) {
	for _, b := range slices.Concat(missedBugs, ruleBugs) {
		t.Run(b.bug+"/"+b.rule, func(t *testing.T) {
			t.Parallel()
			s := b.suite()
			i := slices.IndexFunc(s.rules, func(r rule) bool { return r.name == b.rule })
			if i < 0 {
				t.Fatalf("there is no rule %s", b.rule)
			}
			clause, _, _ := strings.Cut(b.rule, "/")
			if found := s.violated(t, s.rules[i]); len(found) == 0 || !strings.Contains(found[0], fmt.Sprintf("SPEC %s is violated", clause)) {
				t.Errorf("the rule reports %q", found)
			}
		})
	}
}
