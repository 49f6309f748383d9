package leasetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// A namedBug is a bug, a suite with it, and the rules that must find it, separated by blanks.
type namedBug struct {
	bug   string
	suite func() *suite
	rules string
}

// ruleBugs are bugs in wrappers around sound implementations, and in hooks of Options.
var ruleBugs = []namedBug{
	{"the floor of epochs is in memory only", storeWith(func(s *plainStore, _ uint64) { s.floor = 0 }, nil), "S3/each-forgotten-state-raises-the-epoch"},
	{"the floor is what was forgotten last", storeWith(nil, func(s *plainStore, floor uint64) {
		if s.floor = s.gone; s.gone == 0 {
			s.floor = floor
		}
	}), "S3/each-forgotten-state-raises-the-epoch"},
	{"the version of an absence recurs after reopening", storeWith(func(s *plainStore, _ uint64) { s.absent = 0 }, nil), "S2/no-version-recurs-in-a-long-life"},
	{"combining marks are dropped", namesAs(func(name string) string { return strings.NewReplacer("\u00e9", "e", "\u0301", "").Replace(name) }), "S6/different-names-are-different-leases"},
	{"signals nothing after it was opened again", storeWith(func(s *plainStore, _ uint64) {
		s.bug, s.spoilt["another"] = "signals nothing once a record is corrupt", true
	}, nil), "S7/a-watch-of-a-reopened-store-signals"},
	{"forgets locks after it was opened again", storeWith(nil, func(s *plainStore, _ uint64) {
		if !s.opened.IsZero() {
			clear(s.records)
		}
	}), "S9/what-is-locked-is-never-forgotten"},
	{"lists nothing infinite after it was opened again", storeWith(func(s *plainStore, _ uint64) { s.bug = "lists what is leased only" }, nil), "S10/a-reopened-store-lists-what-is-held"},
	{"reopening forgets expired leases", reopening(func(r lease.Record, now time.Time) lease.Record {
		if r.At(now).State == lease.Expired {
			return lease.Record{Epoch: r.Epoch}
		}
		return r
	}), "S3/reopening-keeps-every-state"},
	{"counts durations from its first sight", anotherClient(func(a lease.Authority) lease.Authority {
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			if res.Record.State == lease.Leased {
				res.MinRemaining = res.Record.Duration
			}
		})
	}), "A5/another-client-is-told-what-is-left-of-a-renewed-lease"},
	{"tells the end of an earlier break", anotherClient(func(a lease.Authority) lease.Authority {
		var first time.Time
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) {
			if res.Record.State == lease.Breaking {
				first = cmp.Or(first, res.Record.Until)
				res.Record.Until = first
			}
		})
	}), "A5/a-later-break-has-its-own-end"},
	{"grants uses of what it has seen granted", anotherClient(func(a lease.Authority) lease.Authority {
		var seen lease.Record
		return leasefault.Answer(a, func(req lease.Request, res *lease.Result, err *error) {
			switch {
			case *err == nil:
				seen = res.Record
			case req.Action == lease.ActionWrite && req.ID == seen.ID:
				*err = nil
			}
		})
	}), "A4/a-grant-that-writes-nothing-is-decided-on-what-another-client-left"},
	{"keeps the version when its authority writes", storeOver(func(s *plainStore) lease.Store { return writesInPlace{s} }), "S1/a-swap-conflicts-after-the-store's-authority"},
	{"has an authority that goes by the clock of its process", storeOver(func(s *plainStore) lease.Store { return ownClock{s} }), "S5/the-store's-authority-goes-by-the-clock-of-the-store"},
	{"waits for a release whatever the context", sessionsAs(func(s *session.Session) lease.Lease { return patientRelease{s} }), "H17/a-release-ends-with-its-context"},
	{"asks long after a signal", watchingSessions(func(ctx context.Context, signals <-chan struct{}, out chan<- struct{}) {
		for range signals {
			if wait(ctx, time.Second) != nil {
				return
			}
			out <- struct{}{}
		}
	}), "H13/a-signal-is-answered-within-a-tenth-of-an-interval"},
	{"proposes the ID that it told again", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return sameID(over)
	}), "H6/each-term-has-its-ID"},
	{"takes over what has no owner", sessionsOver("", func(over lease.Authority, h Holder) lease.Authority {
		return leasefault.Answer(over, func(_ lease.Request, res *lease.Result, err *error) {
			if *err != nil && res.Record.Owner == "" {
				res.Record.Owner = h.Owner
			}
		})
	}), "H8/take-over-spares-what-has-no-owner"},
	{"takes a conflict for a release", sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRelease && lease.CodeOf(*err) == lease.ErrConflict {
				*err = nil
			}
		})
	}), "H17/a-conflict-is-no-release"},
	{"asks under a done context", sessionsAs(func(s *session.Session) lease.Lease { return doneAcquire{s} }), "H2/done-context-makes-no-request"},
	{"CheckAlive is a flag", sessionsAs(func(s *session.Session) lease.Lease { return &flagAlive{Session: s} }), "H9/false-from-the-end-on H10/a-clock-that-jumps-ends-the-belief"},
	{"a release hides the loss that nothing had noticed", sessionsAs(func(s *session.Session) lease.Lease { return &hidesLoss{Session: s} }), "H15/a-release-at-the-end"},
	{"tells a handler of the loss before it", sessionsAs(func(s *session.Session) lease.Lease { return &tellsLater{Session: s} }), "H16/a-handler-registered-after-the-end-is-not-called"},
	{"counts its belief from the answer", func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = wrap.Authority(countsFromAnswer{h.Authority, h.Duration}, h.Authority)
			if h.Duration != lease.Infinite {
				h.Duration += h.Duration / 10
			}
			return newBuggySession(t, h, "")
		}
		return s
	}, "H4/a-grant-answered-too-late-is-an-error H9/counted-from-the-sending"},
	{"takes an error with a code for a refusal", answeredTo(lease.ActionRenew, func(_ *lease.Result, err *error) {
		if c := lease.CodeOf(*err); c == lease.ErrConflict || c == lease.ErrCorrupt {
			*err = lease.ErrIDMismatch
		}
	}), "H11/errors-are-retried"},
	{"takes every refusal for a loss", answeredTo(lease.ActionRenew, func(res *lease.Result, err *error) {
		if lease.CodeOf(*err).Refusal() {
			*res = lease.Result{}
		}
	}), "H11/a-refusal-that-shows-the-own-ID-is-no-loss"},
	{"takes every refusal for held", answeredTo(lease.ActionAcquire, func(_ *lease.Result, err *error) {
		if lease.CodeOf(*err) != 0 {
			*err = lease.ErrHeldByOther
		}
	}), "H1/other-refusals-are-errors"},
	{"takes any holder", func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			if lease.CheckName(h.Name) != nil || lease.CheckOwner(h.Owner) != nil || h.Duration < time.Second {
				h.Name, h.Owner, h.Duration = "name", "owner", time.Minute
			}
			return newBuggySession(t, h, "")
		}
		return s
	}, "H22/bad-holders-are-refused"},
}

// answeredTo returns a suite over sessions that get the answers to requests of an action as f changes them.
func answeredTo(action lease.Action, f func(res *lease.Result, err *error)) func() *suite {
	return sessionsOver("", func(over lease.Authority, _ Holder) lease.Authority {
		return leasefault.Answer(over, func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == action {
				f(res, err)
			}
		})
	})
}

// countsFromAnswer makes as much certain as if each request had taken no time.
type countsFromAnswer struct {
	lease.Authority
	most time.Duration // the longest duration that it asks for
}

func (a countsFromAnswer) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	sent := time.Now()
	req.Duration = min(req.Duration, a.most)
	res, err := a.Authority.Do(ctx, name, req)
	if err == nil && res.MinRemaining != lease.Infinite {
		res.MinRemaining += time.Since(sent)
	}
	return res, err
}

// A doneAcquire is a session that asks under a context that is done, too, and returns at once.
type doneAcquire struct{ *session.Session }

func (d doneAcquire) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	if err := ctx.Err(); err != nil {
		go func() { _ = d.Session.Wait(context.WithoutCancel(ctx)) }()
		return "", false, err
	}
	return d.Session.AcquireWithToken(ctx)
}

// A flagAlive is alive from a grant to the call of OnLost or Release.
type flagAlive struct {
	*session.Session
	alive atomic.Bool
}

func (a *flagAlive) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := a.Session.AcquireWithToken(ctx)
	if ok && !a.alive.Swap(true) {
		a.OnLost(func(error) { a.alive.Store(false) })
	}
	return tok, ok, err
}

func (a *flagAlive) CheckAlive() bool { return a.alive.Load() }

func (a *flagAlive) Release(ctx context.Context) error {
	a.alive.Store(false)
	return a.Session.Release(ctx)
}

// A hidesLoss calls no handler during a Release.
type hidesLoss struct {
	*session.Session
	releasing atomic.Bool
}

func (h *hidesLoss) Release(ctx context.Context) error {
	h.releasing.Store(true)
	defer h.releasing.Store(false)
	err := h.Session.Release(ctx)
	_ = wait(ctx, time.Nanosecond) // handlers run in goroutines
	return err
}

func (h *hidesLoss) OnLost(f func(error)) (stop func() bool) {
	return h.Session.OnLost(func(err error) {
		if !h.releasing.Load() {
			f(err)
		}
	})
}

// A tellsLater calls a handler at once if the lease is no longer held.
type tellsLater struct {
	*session.Session
	held atomic.Bool
}

func (l *tellsLater) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := l.Session.AcquireWithToken(ctx)
	l.held.Store(ok)
	return tok, ok, err
}

func (l *tellsLater) OnLost(f func(error)) (stop func() bool) {
	if l.held.Load() && !l.CheckAlive() {
		go f(lease.ErrExpired)
	}
	return l.Session.OnLost(f)
}

// cellNamed returns the suite with the bug of that cell.
func cellNamed(name string) func() *suite {
	all := cellBugs()
	i := slices.IndexFunc(all, func(b cellBug) bool { return b.name == name })
	if i < 0 {
		panic("there is no bug " + name)
	}
	return all[i].suite
}

// storeWith returns a suite over stores that reopening and forgetting change as the functions say, which get
// the store after the event, and its floor before.
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

// sessionsOver returns a suite over sessions with the given bug that use their authority through change.
func sessionsOver(bug string, change func(over lease.Authority, h Holder) lease.Authority) func() *suite {
	return func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = wrap.Authority(change(h.Authority, h), h.Authority)
			return newBuggySession(t, h, bug)
		}
		return s
	}
}

// sessionsAs returns a suite over leases that change makes of sound sessions.
func sessionsAs(change func(*session.Session) lease.Lease) func() *suite {
	return func() *suite {
		s := buggySessions("")
		inner := s.newLease
		s.newLease = func(t testing.TB, h Holder) lease.Lease { return change(inner(t, h).(*buggySession).Session) }
		return s
	}
}

// watchingSessions returns a suite over sessions that watch their leases through pass.
func watchingSessions(pass func(ctx context.Context, signals <-chan struct{}, out chan<- struct{})) func() *suite {
	return func() *suite {
		s := buggySessions("")
		s.newLease = func(t testing.TB, h Holder) lease.Lease {
			h.Authority = wrap.Authority(passedSignals{h.Authority, pass}, h.Authority)
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

// An ownClock is a store whose authority reads the clock of its process.
type ownClock struct{ *plainStore }

func (s ownClock) Authority() lease.Authority { return lease.NewAuthority(onOwnClock(s)) }

type onOwnClock struct{ *plainStore }

func (s onOwnClock) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.plainStore.Load(ctx, name)
	snap.Now = time.Now().Round(0).UTC()
	return snap, err
}

// A patientRelease is a session whose Release ignores its context.
type patientRelease struct{ *session.Session }

func (p patientRelease) Release(ctx context.Context) error {
	return p.Session.Release(context.WithoutCancel(ctx))
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

// storeOver returns a suite over stores that f makes of plain ones.
func storeOver(f func(*plainStore) lease.Store) func() *suite {
	return func() *suite {
		s := plainStores("")
		s.newStore = func(testing.TB) lease.Store { return f(newPlainStore("")) }
		return s
	}
}
