package leasetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// ruleBugs are a bug for each rule that none of the tables has one for.
var ruleBugs = []namedBug{
	{"lowers the epoch of a second lease", cellNamed("store/leased x operation/is written with a lower epoch"), "S1/swap-commits-in-every-state"},
	{"takes an ended context for a conflict", cellNamed("store/breaking x cancelled context/is replaced under a done context, and a conflict"), "S1/an-ended-context-is-no-conflict-in-any-state"},
	{"has epochs for versions", cellNamed("store/breaking x operation/has its epoch for a version"), "S2/no-version-recurs-in-any-state"},
	{"begins versions anew", func() *suite { return plainStores("versions begin anew after reopening") }, "S2/stale-swap-conflicts-after-reopening"},
	{"tells an earlier time of a break", cellNamed("store/breaking x time/tells an earlier time"), "S4/time-never-decreases-in-any-state"},
	{"signals no end of an infinite lease", cellNamed("store/infinite x operation/is not signalled when it changes"), "S7/unlocking-signals-from-every-state"},
	{"has a cache for each client", cellNamed("store/breaking x second client/is shown as it was"), "S8/no-load-is-stale-for-another-client-in-any-state"},

	{"folds case when it is opened again", storeWith(func(s *plainStore, _ uint64) {
		for name, r := range s.records {
			for other := range s.records {
				if other < name && strings.EqualFold(other, name) {
					s.records[other] = r
				}
			}
		}
	}, nil), "S6/names-are-different-after-reopening"},
	{"signals nothing after it was opened again", storeWith(func(s *plainStore, _ uint64) { s.watches = map[string][]plainWatch{}; s.bug = "signals no release" }, nil), "S7/a-watch-of-a-reopened-store-signals"},
	{"forgets locks after it was opened again", storeWith(func(s *plainStore, _ uint64) { s.bug = "forgets what is locked" }, nil), "S9/what-is-locked-is-not-forgotten-after-reopening"},
	{"lists nothing infinite after it was opened again", storeWith(func(s *plainStore, _ uint64) { s.bug = "lists what is leased only" }, nil), "S10/a-reopened-store-lists-what-is-held"},
	{"counts versions in each client", func() *suite {
		s := plainStores("")
		s.options.Another = func(_ testing.TB, of lease.Store) lease.Store { return &countingClient{Store: of} }
		return s
	}, "S2/versions-of-two-clients-never-recur"},
	{"lists breaks to the client that broke only", func() *suite {
		s := plainStores("")
		s.options.Another = func(_ testing.TB, of lease.Store) lease.Store {
			return &wrappedStore{plainStore: of.(*plainStore), state: "breaking", bug: &storeBug{hides: true}}
		}
		return s
	}, "S10/another-client-lists-what-is-held"},

	{"a use sets the owner", cellNamed("authority/infinite write (A)/changes the owner"), "M1/every-request-in-every-state"},
	{"a use makes the lease more certain", cellNamed("authority/leased write (A)/says that too much is certain"), "A5/every-answer-in-every-state"},
	{"a write has another time", cellNamed("authority/broken write/says a time before"), "A2/time-never-decreases-in-any-state"},
	{"a release ignores its context", cellNamed("authority/infinite release (A)/is carried out under a done context"), "A6/a-done-context-changes-no-state"},
	{"a broken lease is worth two grants", cellNamed("authority/broken acquire (A)/raises the epoch"), "M4/tokens-rise-from-every-state"},
	{"reopening forgets expired leases", reopening(func(r lease.Record, now time.Time) lease.Record {
		if r.At(now).State == lease.Expired {
			return lease.Record{Epoch: r.Epoch}
		}
		return r
	}), "S3/reopening-keeps-every-state"},
	{"reopening forgets what was released", reopening(func(r lease.Record, _ time.Time) lease.Record {
		if r.State == lease.Available {
			return lease.Record{}
		}
		return r
	}), "M4/reopening-lowers-no-token"},
	{"reads from a cache of its own", func() *suite {
		s := plainAuthorities("")
		s.options.AnotherAuthority = func(_ testing.TB, a lease.Authority) lease.Authority {
			return &cachedReads{Authority: a, seen: map[string]lease.Result{}}
		}
		return s
	}, "A4/another-client-sees-every-state"},
	{"has a lock for each client", func() *suite {
		s := plainAuthorities("loads, decides and writes in three steps")
		return s
	}, "A2/clients-exclude-each-other"},

	{"renews an infinite lease without a bound", cellNamed("holder/renew/has no bound"), "H11/every-renewal-of-an-infinite-lease-has-a-bound"},
	{"undoes without a bound", cellNamed("holder/release/has no bound"), "H3/every-undoing-has-a-bound"},
	{"waits for a release whatever the context", func() *suite {
		s := buggySessions("")
		inner := s.newLease
		s.newLease = func(t testing.TB, h Holder) lease.Lease { return patientRelease{inner(t, h).(*buggySession).Session} }
		return s
	}, "H17/a-release-ends-with-its-context"},
	{"changes the owner", cellNamed("holder/change/has another owner"), "H8/the-owner-is-sent"},
	{"believes after a loss", cellNamed("holder/Acquire x lost/is true"), "H1/denied-in-every-state"},
	{"waits after a loss", cellNamed("holder/Acquire x lost/waits"), "H1/acquire-does-not-wait-in-any-state"},
	{"asks while it is breaking", cellNamed("holder/Acquire x breaking/is an error"), "H5/acquire-while-breaking-sends-nothing"},
	{"keeps what is breaking", cellNamed("holder/Release x breaking/does nothing"), "H17/a-release-ends-a-break"},
	{"forgets that it is breaking", cellNamed("holder/loss/is told as expired"), "H13/a-break-ends-though-the-holder-is-cut-off"},
	{"renews what is gone", cellNamed("holder/renew/takes a refusal for an error"), "H11/a-lease-that-is-gone-is-lost"},
	{"ends a wait without an error", cellNamed("holder/Wait x idle/hides its error"), "H21/wait-ends-with-its-context"},
	{"believes after close", cellNamed("holder/CheckAlive x closed/is true"), "H18/what-is-closed-stays-closed"},
}

// reopening returns a suite over authorities that change their records when they are opened again.
func reopening(f func(r lease.Record, now time.Time) lease.Record) func() *suite {
	return func() *suite {
		s := plainAuthorities("")
		s.options.ReopenAuthority = func(_ testing.TB, a lease.Authority) lease.Authority {
			next := a.(*plainAuthority).client()
			for name, r := range next.records {
				next.records[name] = f(r, time.Now())
			}
			return next
		}
		return s
	}
}

// A countingClient shows versions that it counts itself, by what the store shows.
type countingClient struct {
	lease.Store
	mu     sync.Mutex
	shown  map[string]string // inner versions, by those that are shown
	counts int
}

func (c *countingClient) show(snap lease.Snapshot, err error) (lease.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return snap, err
	}
	if c.shown == nil {
		c.shown = map[string]string{}
	}
	c.counts++
	version := fmt.Sprint("swap-", c.counts%4)
	c.shown[version] = snap.Version
	snap.Version = version
	return snap, nil
}

func (c *countingClient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return c.show(c.Store.Load(ctx, name))
}

func (c *countingClient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	c.mu.Lock()
	old.Version = c.shown[old.Version]
	c.mu.Unlock()
	return c.show(c.Store.Swap(ctx, name, old, next))
}

// cachedReads is an authority that answers a read as it did before.
type cachedReads struct {
	lease.Authority
	mu   sync.Mutex
	seen map[string]lease.Result
}

func (a *cachedReads) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if res, ok := a.seen[name]; ok && req.Action == lease.ActionRead && req.ID.IsZero() {
		return res, nil
	}
	res, err := a.Authority.Do(ctx, name, req)
	if err == nil {
		a.seen[name] = res
	}
	return res, err
}

// A patientRelease is a session whose Release ignores its context.
type patientRelease struct{ *session.Session }

func (p patientRelease) Release(ctx context.Context) error {
	return p.Session.Release(context.WithoutCancel(ctx))
}
