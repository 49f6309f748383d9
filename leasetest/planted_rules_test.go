package leasetest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// ruleBugs are a bug for each rule that none of the tables has one for.
var ruleBugs = []namedBug{
	{"lowers the epoch of a second lease", cellNamed("store/leased x operation/is written with a lower epoch"), "S1/swap-commits-in-every-state"},
	{"takes an ended context for a conflict", cellNamed("store/breaking x cancelled context/is replaced under a done context, and a conflict"), "S1/an-ended-context-is-no-conflict-in-any-state"},
	{"has epochs for versions", cellNamed("store/breaking x operation/has its epoch for a version"), "S2/no-version-recurs-in-any-state"},
	{"restarts versions", func() *suite { return plainStores("versions restart after reopening") }, "S2/stale-swap-conflicts-after-reopening"},
	{"returns an earlier time of a break", cellNamed("store/breaking x time/returns an earlier time"), "S4/time-never-decreases-in-any-state"},
	{"signals no end of an infinite lease", cellNamed("store/infinite x operation/is not signalled when it changes"), "S7/what-must-be-signalled-is-in-every-state"},
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
		s.options.Store.Another = func(_ testing.TB, of lease.Store) lease.Store { return &countingClient{Store: of} }
		return s
	}, "S2/versions-of-two-clients-never-recur"},
	{"lists breaks to the client that broke only", func() *suite {
		s := plainStores("")
		s.options.Store.Another = func(_ testing.TB, of lease.Store) lease.Store {
			return &wrappedStore{plainStore: of.(*plainStore), state: "breaking", bug: &storeBug{hides: true}}
		}
		return s
	}, "S10/another-client-lists-what-is-held"},
	{"lists a name as it was in the first list", func() *suite {
		s := plainStores("")
		s.options.Store.Another = func(_ testing.TB, of lease.Store) lease.Store {
			return &listsOnce{Store: of, first: map[string]lease.Entry{}}
		}
		return s
	}, "S10/another-client's-changes-are-listed"},
	{"releases nothing that it does not believe to hold", sessionsAs(func(s *session.Session) lease.Lease { return releasesHeld{s} }), "N2/a-run-releases-what-its-function-could-not"},
	{"acquires the lease only once", sessionsAs(func(s *session.Session) lease.Lease { return &holdsOnce{Session: s} }), "N1/a-run-contends-again-if-the-caller-lets-it"},

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
		s.options.Authority.Another = func(_ testing.TB, a lease.Authority) lease.Authority {
			return &cachedReads{Authority: a, seen: map[string]lease.Result{}}
		}
		return s
	}, "A4/another-client-sees-every-state"},
	{"grants a use from memory", anotherClient(func(a lease.Authority) lease.Authority { return &usesRemembered{Authority: a} }),
		"A4/a-grant-that-writes-nothing-is-decided-on-what-another-client-left"},
	{"refuses once more from memory", anotherClient(func(a lease.Authority) lease.Authority {
		return &remembers{Authority: a, refused: map[string]lease.Result{}}
	}), "A4/a-refusal-is-decided-on-what-another-client-left"},
	{"has a clock that is ahead", anotherClient(func(a lease.Authority) lease.Authority { return impatient{a, 2 * time.Second} }), "A2/another-client-respects-a-lock-to-its-end"},
	{"counts durations from its first sight", anotherClient(func(a lease.Authority) lease.Authority {
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			if res.Record.State == lease.Leased {
				res.MinRemaining = res.Record.Duration
			}
		})
	}), "A5/another-client-is-told-what-is-left"},
	{"takes breaking for nearly over", anotherClient(func(a lease.Authority) lease.Authority {
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			if res.Record.State == lease.Breaking {
				res.Record.Until, res.MinRemaining = res.Now.Add(1), 1
			}
		})
	}), "A5/another-client-is-told-what-is-left"},
	{"bounds names and owners in characters", authorityOver("", func(a lease.Authority) lease.Authority { return shortNames{a} }), "R6/names-and-owners"},
	{"lets an infinite period pass", authorityOver("limits", func(a lease.Authority) lease.Authority { return shortPeriods{a} }), "A7/limits-are-kept"},
	{"looks at old periods", authorityOver("", func(a lease.Authority) lease.Authority { return oldPeriods{a} }), "M17/before-2012-02-12-no-period-is-looked-at"},
	{"shows the time of the load with a swap", storeOver(func(s *plainStore) lease.Store { return timeOfLoad{s} }), "S4/time-never-decreases-at-a-swap"},
	{"a load takes the signal back", storeOver(func(s *plainStore) lease.Store { return &draining{plainStore: s} }), "S7/no-other-call-takes-a-signal-back"},
	{"counts from its own sight of a change", anotherClient(func(a lease.Authority) lease.Authority { return countsFromFirstRead{a, map[string]uint64{}} }), "A5/another-client-is-told-what-is-left-of-a-renewed-lease"},
	{"has a lock for each client", func() *suite {
		s := plainAuthorities("loads, decides and writes in three steps")
		return s
	}, "A2/clients-exclude-each-other"},

	{"decides a first acquire without its lock", func() *suite {
		return plainAuthorities("loads, decides and writes in three steps")
	}, "A2/one-first-acquire-wins"},
	{"takes half of the time for the time that a break leaves", anotherClient(func(a lease.Authority) lease.Authority {
		return leasefault.Answer(a, func(req lease.Request, res *lease.Result, _ *error) {
			if req.Action == lease.ActionBreak && res.Record.State == lease.Breaking {
				res.Record.Until = res.Now.Add(res.MaxRemaining() / 2)
			}
		})
	}), "A8/a-break-tells-enough"},
	{"takes a later break for the break that it saw first", anotherClient(func(a lease.Authority) lease.Authority {
		var end time.Time
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			switch {
			case res.Record.State != lease.Breaking:
			case end.IsZero():
				end = res.Record.Until
			default:
				res.Record.Until = end
				res.MinRemaining = 0
			}
		})
	}), "A5/a-later-break-has-its-own-end"},
	{"takes the first end that it saw for that of a break", anotherClient(func(a lease.Authority) lease.Authority {
		seen := map[string]time.Time{}
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			name := res.Record.ID.String()
			if first, ok := seen[name]; ok && res.Record.State == lease.Breaking {
				res.Record.Until = first
			}
			seen[name] = res.Record.Until
		})
	}), "A5/a-break-after-a-renewal-that-another-client-missed"},
	{"keeps the version when its authority writes", storeOver(func(s *plainStore) lease.Store { return writesInPlace{s} }), "S1/a-swap-conflicts-after-the-store's-authority"},
	{"ends a list at a name that is gone", func() *suite {
		s := storeOver(func(s *plainStore) lease.Store { return endsAtGaps{s} })()
		s.options.Store.Forget = func(t testing.TB, of lease.Store) time.Duration { return of.(endsAtGaps).forget(t, of) }
		return s
	}, "S10/a-list-goes-on-though-names-are-forgotten"},
	{"sends an acquire that waited for another, though its context has ended", sessionsAs(func(s *session.Session) lease.Lease { return queuesForever{s, make(chan struct{}, 1)} }), "H2/a-queued-acquire-ends-with-its-context"},
	{"takes a take-over for the end of the lease", sessionsAs(func(s *session.Session) lease.Lease { return hidesTakeOvers{s} }), "H8/a-run-that-was-taken-over-ends"},
	{"renews again when any renewal returns", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return &renewsAgain{Authority: over}
	}), "H11/an-earlier-renewal-frees-no-later-one"},
	{"renews once more while two renewals hang", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return &renewsBeside{Authority: over}
	}), "H11/an-answer-in-between-frees-no-renewal-that-hangs"},
	{"gives the newest context back, and not its own", sessionsAs(func(s *session.Session) lease.Lease { return &givesBackNewest{Session: s} }), "H20/a-loss-waits-though-an-earlier-context-is-given-back"},

	{"renews an infinite lease without a bound", cellNamed("holder/renew/has no bound"), "H11/every-renewal-of-an-infinite-lease-has-a-bound"},
	{"undoes without a bound", cellNamed("holder/release/has no bound"), "H3/every-undoing-has-a-bound"},
	{"waits for a release whatever the context", sessionsAs(func(s *session.Session) lease.Lease { return patientRelease{s} }), "H17/a-release-ends-with-its-context"},
	{"changes the owner", cellNamed("holder/change/has another owner"), "H8/the-owner-is-sent"},
	{"believes after a loss", cellNamed("holder/Acquire x lost/is true"), "H1/denied-in-every-state"},
	{"waits after a loss", cellNamed("holder/Acquire x lost/waits"), "H1/acquire-does-not-wait-in-any-state"},
	{"asks while it is breaking", cellNamed("holder/Acquire x breaking/is an error"), "H5/acquire-while-breaking-sends-nothing"},
	{"keeps what is breaking", cellNamed("holder/Release x breaking/does nothing"), "H17/a-release-ends-a-break"},
	{"forgets that it is breaking", cellNamed("holder/loss/is told as expired"), "H13/a-break-ends-though-the-holder-is-cut-off"},
	{"asks long after a signal", watchingSessions(func(ctx context.Context, signals <-chan struct{}, out chan<- struct{}) {
		for range signals {
			if wait(ctx, time.Second) != nil {
				return
			}
			out <- struct{}{}
		}
	}), "H13/a-signal-is-answered-within-a-tenth-of-an-interval"},
	{"looks after a signal, and takes a break for nothing new", func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = leasefault.Answer(h.Authority, func(req lease.Request, res *lease.Result, _ *error) {
				if req.Action == lease.ActionRead && res.Record.State == lease.Breaking {
					res.Record.State = lease.Leased
				}
			})
			return newBuggySession(t, h, "watches")
		}
		return s
	}, "H13/a-signal-is-answered-within-a-tenth-of-an-interval"},
	{"asks once for signals that follow each other", watchingSessions(func(_ context.Context, signals <-chan struct{}, out chan<- struct{}) {
		var last time.Time
		for range signals {
			if time.Since(last) > time.Second {
				last = time.Now()
				out <- struct{}{}
			}
		}
	}), "H13/a-signal-is-answered-within-a-tenth-of-an-interval"},
	{"pauses after a signal without a change", sessionsOver("watches", func(over lease.Authority, _ Holder) lease.Authority {
		return pausesAfterNothing(over)
	}), "H13/a-signal-is-answered-within-a-tenth-of-an-interval"},
	{"proposes the ID that it told again", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return &sameID{Authority: over}
	}), "H6/an-ID-that-was-told-has-one-incarnation"},
	{"takes over what has no owner", sessionsOver("", func(over lease.Authority, h Holder) lease.Authority {
		return takesFor(over, h.Owner, func(one, _ string) bool { return one == "" })
	}), "H8/take-over-spares-what-has-no-owner"},
	{"forgets signals during a renewal", sessionsOver("watches", func(over lease.Authority, _ Holder) lease.Authority {
		return deafWhileRenewing(over)
	}), "H13/a-signal-during-a-renewal-is-answered"},
	{"takes a renewal that hangs for one that has returned", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return leavesRenewals{over}
	}), "H11/two-renewals-that-hang-stop-all-others"},
	{"waits half a duration for its work", func() *suite {
		s := buggySessions("")
		inner := s.newLease
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			log := &lastProposed{Authority: h.Authority}
			h.Authority = passon.Authority(log, h.Authority)
			l := inner(t, h)
			l.OnLost(func(error) {
				if wait(t.Context(), h.Duration/2) == nil {
					_, _ = h.Authority.Do(t.Context(), h.Name, release(*log.id.Load()))
				}
			})
			return l
		}
		return s
	}, "H20/a-loss-waits-no-longer-than-the-lease"},
	{"takes a conflict for a release", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRelease && lease.CodeOf(*err) == lease.ErrConflict {
				*err = nil
			}
		})
	}), "H17/a-conflict-is-no-release"},
	{"waits after a close", sessionsAs(func(s *session.Session) lease.Lease { return waitsClosed{s} }), "H21/wait-after-close-returns"},
	{"renews what is gone", cellNamed("holder/renew/takes a refusal for an error"), "H11/a-lease-that-is-gone-is-lost"},
	{"ends a wait without an error", cellNamed("holder/Wait x idle/hides its error"), "H21/wait-ends-with-its-context"},
	{"believes after close", cellNamed("holder/CheckAlive x closed/is true"), "H18/what-is-closed-stays-closed"},
}

// countsFromFirstRead counts what is left of a record from its own first read of it.
type countsFromFirstRead struct {
	lease.Authority
	epochs map[string]uint64 // that it has seen, by name
}

func (a countsFromFirstRead) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	if seen, ok := a.epochs[name]; ok && res.Record.State == lease.Leased && res.Record.Epoch != seen {
		res.MinRemaining = res.Record.Duration
	}
	a.epochs[name] = res.Record.Epoch
	return res, err
}

// reopening returns a suite over authorities that change their records when they are opened again.
func reopening(f func(r lease.Record, now time.Time) lease.Record) func() *suite {
	return func() *suite {
		s := plainAuthorities("")
		s.options.Authority.Reopen = func(_ testing.TB, a lease.Authority) lease.Authority {
			next := a.(*plainAuthority).client()
			for name, r := range next.records {
				next.records[name] = f(r, time.Now())
			}
			return next
		}
		return s
	}
}

// sessionsOver returns a suite over sessions, with the given bug of a buggySession, that use their
// authority through wrap.
func sessionsOver(bug string, wrap func(over lease.Authority, h Holder) lease.Authority) func() *suite {
	return func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = passon.Authority(wrap(h.Authority, h), h.Authority)
			return newBuggySession(t, h, bug)
		}
		return s
	}
}

// sessionsAs returns a suite over leases that wrap makes of sound sessions.
func sessionsAs(wrap func(*session.Session) lease.Lease) func() *suite {
	return func() *suite {
		s := buggySessions("")
		inner := s.newLease
		s.newLease = func(t testing.TB, h Holder) lease.Lease { return wrap(inner(t, h).(*buggySession).Session) }
		return s
	}
}

// deafWhileRenewing drops the signals that come while a renewal is in flight.
func deafWhileRenewing(over lease.Authority) lease.Authority {
	var renewing atomic.Int32
	counted := leasefault.Script(over, leasefault.Always(lease.ActionRenew, func(ctx context.Context, c *leasefault.Call) error {
		renewing.Add(1)
		defer renewing.Add(-1)
		return c.Send(ctx)
	}))
	return passedSignals{counted, func(_ context.Context, signals <-chan struct{}, out chan<- struct{}) {
		for range signals {
			if renewing.Load() == 0 {
				out <- struct{}{}
			}
		}
	}}
}

// pausesAfterNothing passes the next signal on a second later if the last read showed no change.
func pausesAfterNothing(over lease.Authority) lease.Authority {
	var last atomic.Value // the record that was read last
	var unchanged atomic.Bool
	reads := leasefault.Answer(over, func(req lease.Request, res *lease.Result, _ *error) {
		if req.Action == lease.ActionRead {
			unchanged.Store(last.Swap(res.Record) == res.Record)
		}
	})
	return passedSignals{reads, func(ctx context.Context, signals <-chan struct{}, out chan<- struct{}) {
		for range signals {
			if unchanged.Load() && wait(ctx, time.Second) != nil {
				return
			}
			out <- struct{}{}
		}
	}}
}

// leavesRenewals returns when the context of a renewal ends, though the renewal has not returned.
type leavesRenewals struct{ lease.Authority }

func (a leavesRenewals) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action != lease.ActionRenew {
		return a.Authority.Do(ctx, name, req)
	}
	answer := make(chan func() (lease.Result, error), 1)
	go func() {
		res, err := a.Authority.Do(ctx, name, req)
		answer <- func() (lease.Result, error) { return res, err }
	}()
	select {
	case f := <-answer:
		return f()
	case <-ctx.Done():
		return lease.Result{}, ctx.Err()
	}
}

// lastProposed remembers the ID that was proposed last.
type lastProposed struct {
	lease.Authority
	id atomic.Pointer[lease.ID]
}

func (a *lastProposed) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionAcquire {
		a.id.Store(&req.Proposed)
	}
	return a.Authority.Do(ctx, name, req)
}

// watchingSessions returns a suite over sessions that watch their leases. The function pass passes on the
// signals.
func watchingSessions(pass func(ctx context.Context, signals <-chan struct{}, out chan<- struct{})) func() *suite {
	return func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = passon.Authority(passedSignals{h.Authority, pass}, h.Authority)
			return newBuggySession(t, h, "watches")
		}
		return s
	}
}

type passedSignals struct {
	lease.Authority
	pass func(ctx context.Context, signals <-chan struct{}, out chan<- struct{})
}

func (a passedSignals) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	signals, err := a.Authority.(lease.Watcher).Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	out := make(chan struct{}, 100)
	go func() {
		defer close(out)
		a.pass(ctx, signals, out)
	}()
	return out, nil
}

// A countingClient replaces the versions of the store with versions that it counts itself.
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

// A writesInPlace is a store whose own authority writes records without a new version.
type writesInPlace struct{ *plainStore }

func (s writesInPlace) Authority() lease.Authority { return inPlaceAuthority(s) }

type inPlaceAuthority struct{ *plainStore }

func (a inPlaceAuthority) Do(_ context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.current(name)
	next, err := lease.Step(now.Record, req, now.Now)
	if err == nil {
		a.records[name] = plainRecord{Record: next, version: now.Version, changed: now.Now}
	}
	return lease.Result{Record: next, Now: now.Now, MinRemaining: next.Remaining(now.Now)}, err
}

// An endsAtGaps ends a list at the first name that was forgotten since the list began.
type endsAtGaps struct{ *plainStore }

func (s endsAtGaps) List(_ context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for _, name := range s.names(prefix) {
			s.mu.Lock()
			_, known := s.records[name]
			s.mu.Unlock()
			if !known {
				return
			}
			if e, err := s.entry(name); !yield(e, err) {
				return
			}
		}
	}
}

// A queuesForever makes one acquire at a time, and makes those whose contexts have ended, too.
type queuesForever struct {
	*session.Session
	turn chan struct{}
}

func (q queuesForever) AcquireWithToken(ctx context.Context) (tok lease.Token, ok bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		q.turn <- struct{}{}
		defer func() { <-q.turn }()
		tok, ok, err = q.Session.AcquireWithToken(context.WithoutCancel(ctx))
	}()
	select {
	case <-done:
		return tok, ok, err
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// A listsOnce is a client that lists each name as in its first list.
type listsOnce struct {
	lease.Store
	first map[string]lease.Entry
}

func (s *listsOnce) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range s.Store.(lease.Lister).List(ctx, prefix) {
			if first, ok := s.first[e.Name]; ok {
				e.Record = first.Record
			}
			s.first[e.Name] = e
			if !yield(e, err) {
				return
			}
		}
	}
}

// A releasesHeld is a session whose Release does nothing if CheckAlive is false.
type releasesHeld struct{ *session.Session }

func (r releasesHeld) Release(ctx context.Context) error {
	if !r.CheckAlive() {
		return nil
	}
	return r.Session.Release(ctx)
}

// A holdsOnce is a session that acquires the lease only once.
type holdsOnce struct {
	*session.Session
	held atomic.Bool
}

func (h *holdsOnce) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	if h.held.Load() {
		return "", false, nil
	}
	tok, ok, err := h.Session.AcquireWithToken(ctx)
	h.held.CompareAndSwap(false, ok)
	return tok, ok, err
}

// A hidesTakeOvers says of each loss that the lease has expired.
type hidesTakeOvers struct{ *session.Session }

func (h hidesTakeOvers) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	held, giveBack := h.Session.WhileHeld(ctx)
	as, end := context.WithCancelCause(ctx)
	context.AfterFunc(held, func() { end(&lease.LostError{Reason: lease.ErrExpired}) })
	return as, func() {
		giveBack()
		<-held.Done()
		end(&lease.LostError{Reason: lease.ErrExpired})
	}
}

// A renewsAgain sends a renewal again if it returns while another one is in flight.
type renewsAgain struct {
	lease.Authority
	flying atomic.Int32
}

func (r *renewsAgain) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action != lease.ActionRenew {
		return r.Authority.Do(ctx, name, req)
	}
	r.flying.Add(1)
	res, err := r.Authority.Do(ctx, name, req)
	if r.flying.Add(-1) > 0 {
		return r.Authority.Do(context.WithoutCancel(ctx), name, req)
	}
	return res, err
}

// A renewsBeside sends one more renewal when two are under way.
type renewsBeside struct {
	lease.Authority
	flying atomic.Int32
}

func (r *renewsBeside) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRenew {
		defer r.flying.Add(-1)
		if r.flying.Add(1) == 2 {
			go func() { _, _ = r.Authority.Do(context.WithoutCancel(ctx), name, req) }()
		}
	}
	return r.Authority.Do(ctx, name, req)
}

// A givesBackNewest gives the newest context back, whichever is meant.
type givesBackNewest struct {
	*session.Session
	mu   sync.Mutex
	open []context.CancelFunc
}

func (g *givesBackNewest) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	held, giveBack := g.Session.WhileHeld(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = append(g.open, giveBack)
	return held, func() {
		g.mu.Lock()
		newest := len(g.open) - 1
		giveBack := g.open[max(0, newest)]
		g.open = g.open[:max(1, newest)]
		g.mu.Unlock()
		giveBack()
	}
}

// A patientRelease is a session whose Release ignores its context.
type patientRelease struct{ *session.Session }

func (p patientRelease) Release(ctx context.Context) error {
	return p.Session.Release(context.WithoutCancel(ctx))
}

type waitsClosed struct{ *session.Session }

func (w waitsClosed) Wait(ctx context.Context) error {
	err := w.Session.Wait(ctx)
	if w.Session.ID().IsZero() { // it is closed
		<-ctx.Done()
	}
	return err
}

// anotherClient returns a suite over authorities whose second clients are made by f.
func anotherClient(f func(lease.Authority) lease.Authority) func() *suite {
	return func() *suite {
		s := plainAuthorities("")
		inner := s.options.Authority.Another
		s.options.Authority.Another = func(t testing.TB, a lease.Authority) lease.Authority { return f(inner(t, a)) }
		return s
	}
}

// authorityOver returns a suite over authorities that f makes of plain ones.
func authorityOver(bug string, f func(lease.Authority) lease.Authority) func() *suite {
	return func() *suite {
		s := plainAuthorities(bug)
		inner := s.newAuthority
		s.newAuthority = func(t testing.TB) lease.Authority { return f(inner(t)) }
		return s
	}
}

// A usesRemembered is a client that grants a use of its last grant without a request.
type usesRemembered struct {
	lease.Authority
	last atomic.Pointer[lease.Result]
}

func (a *usesRemembered) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if last := a.last.Load(); last != nil && req.Action == lease.ActionWrite && req.ID == last.Record.ID {
		return *last, nil
	}
	res, err := a.Authority.Do(ctx, name, req)
	if err == nil && req.Action == lease.ActionAcquire {
		a.last.Store(&res)
	}
	return res, err
}

// shortNames accepts names of up to 1024 characters.
type shortNames struct{ lease.Authority }

func (a shortNames) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if n := utf8.RuneCountInString(name); lease.CheckName(name) != nil && utf8.ValidString(name) && n > lease.MaxLabel/4 && n <= lease.MaxLabel {
		name = string([]rune(name)[:lease.MaxLabel/4])
	}
	return a.Authority.Do(ctx, name, req)
}

// shortPeriods takes the longest period for an infinite one.
type shortPeriods struct{ lease.Authority }

func (a shortPeriods) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if d, _ := req.Period.Get(); d == lease.Infinite {
		req.Period = lease.Grace(time.Second)
	}
	return a.Authority.Do(ctx, name, req)
}

// remembers answers a request for a lock with the refusal that it got before, once.
type remembers struct {
	lease.Authority
	mu      sync.Mutex
	refused map[string]lease.Result
}

func (a *remembers) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was, ok := a.refused[name]; ok && req.Action == lease.ActionAcquire {
		delete(a.refused, name)
		return was, &lease.OpError{Op: "acquire", Name: name, Err: lease.ErrHeldByOther}
	}
	res, err := a.Authority.Do(ctx, name, req)
	if res.Record.State.Locked() {
		a.refused[name] = res
	}
	return res, err
}

// impatient ends a lease that has less than ahead left, and acquires it.
type impatient struct {
	lease.Authority
	ahead time.Duration
}

func (a impatient) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := a.Authority.Do(ctx, name, req)
	if err != nil && req.Action == lease.ActionAcquire && res.Record.State.Locked() && res.Record.Remaining(res.Now) < a.ahead {
		_, _ = a.Authority.Do(ctx, name, release(res.Record.ID))
		return a.Authority.Do(ctx, name, req)
	}
	return res, err
}

// oldPeriods refuses periods that are out of range, whatever the version.
type oldPeriods struct{ lease.Authority }

func (a oldPeriods) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if d, _ := req.Period.Get(); d < 0 {
		req.Version = 0
	}
	return a.Authority.Do(ctx, name, req)
}

// storeOver returns a suite over stores that f makes of plain ones.
func storeOver(f func(*plainStore) lease.Store) func() *suite {
	return func() *suite {
		s := plainStores("")
		s.newStore = func(testing.TB) lease.Store { return f(newPlainStore("")) }
		return s
	}
}

// timeOfLoad returns the time of the load from a swap.
type timeOfLoad struct{ *plainStore }

func (s timeOfLoad) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.plainStore.Swap(ctx, name, old, next)
	if err == nil {
		snap.Now = old.Now
	}
	return snap, err
}

// draining receives the signals of its watches at each load.
type draining struct {
	*plainStore
	watches []<-chan struct{}
}

func (s *draining) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	signals, err := s.plainStore.Watch(ctx, name)
	s.watches = append(s.watches, signals)
	return signals, err
}

func (s *draining) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	for _, signals := range s.watches {
		select {
		case <-signals:
		default:
		}
	}
	return s.plainStore.Load(ctx, name)
}

// S3 asks for no lower epoch: when a store or an authority is opened again, it may have forgotten
// names, and may show a higher epoch for them.
func TestReopeningMayRaiseEpochsOfUnknownNames(t *testing.T) {
	stores := storeWith(func(s *plainStore, _ uint64) {
		s.floor += 5
		for name, r := range s.records {
			if r.ID.IsZero() {
				r.Epoch += 5
				s.records[name] = r
			}
		}
	}, nil)
	authorities := reopening(func(r lease.Record, _ time.Time) lease.Record {
		if r.ID.IsZero() {
			r.Epoch += 5
		}
		return r
	})
	for _, s := range []*suite{stores(), authorities()} {
		if found := s.violations(t, "S3/reopening-keeps-every-state"); len(found) != 0 {
			t.Error(found[0])
		}
	}
}
