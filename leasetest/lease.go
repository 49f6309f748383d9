package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A Holder has the arguments that the suite passes to the constructor of a lease under test.
type Holder struct {
	Name      string          // the name of the lease; holders with the same name contend
	Owner     string          // the owner; a holder with an empty owner differs from every other holder
	TakeOver  bool            // the holder may take over a lease of the same owner
	Duration  time.Duration   // the duration of the lease; renewals are expected about every third of it
	Clock     lease.Clock     // the clock of the holder; nil for package time
	Authority lease.Authority // the authority for all requests; nil without CanUseAuthority
}

// TestLease tests a lease against the H clauses and the clause M4 of SPEC.md. It also calls session.Run to
// test the N clauses. TestLease runs one subtest for each rule.
//
// Each subtest calls newLease for a lease that the holder h has not acquired yet, in the same way as
// [TestStore] calls newStore. The function newLease should call t.Cleanup with a function that stops all
// goroutines of the lease. That function must not use t.Context(), which is canceled before cleanup functions
// run. The suite also calls newLease with invalid holders, for which newLease must pass the error to t.Fatal.
//
// For a lease with an authority of its own, remove [CanUseAuthority] from [Options].Can. [Holder].Authority
// is then nil. To let the suite run more rules for such a lease, set LeaseHooks.Revoke and LeaseHooks.Cut.
//
// One rule registers a handler that panics. In a bubble this rule runs last. If the lease does not recover
// from the panic, the process ends, and its last message names the rule.
func TestLease(t *testing.T, newLease func(t testing.TB, h Holder) lease.Lease, o *Options) {
	must(newLease != nil, "TestLease: newLease must not be nil")
	s := &suite{rules: leaseRules, options: o.withDefaults(), newLease: newLease}
	s.test(t)
}

var leaseRules = slices.Concat(leaseTokenRules, acquireRules, idRules, beliefRules, renewalRules, breakRules, boundRules, lossRules, heldRules, releaseRules, waitRules, runRules, panicRules)

// A world contains the authority that all leases of a rule share.
type world struct {
	*tester
	direct lease.Authority // the authority without faults or history; nil without CanUseAuthority
}

func (p *tester) world() *world {
	switch {
	case !p.can(CanUseAuthority):
		return &world{p, nil}
	case p.Options.Lease.Authority == nil:
		return &world{p, lease.NewAuthority(memory.New(nil))}
	}
	a := p.Options.Lease.Authority(p.TB)
	p.checkMade(a, "Options.Lease.Authority")
	return &world{p, p.history.delays.authority(a)}
}

// worldOf returns a world of which each lease has the given name by default.
func (p *tester) worldOf(name string) *world {
	p.name = name
	return p.world()
}

// The method one returns a world and one lease in it, with the owner "a" and the given faults.
func (p *tester) one(lines ...leasefault.Line[lease.Action]) (*world, *contender) {
	p.Helper()
	w := p.world()
	return w, w.join(Holder{Owner: "a"}, lines...)
}

// The method two returns a world and two leases in it, of which the first has the given faults.
func (p *tester) two(lines ...leasefault.Line[lease.Action]) (w *world, a, b *contender) {
	p.Helper()
	w, a = p.one(lines...)
	return w, a, w.join(Holder{Owner: "b"})
}

func (p *tester) gate() *leasefault.Gate {
	g := new(leasefault.Gate)
	p.gates = append(p.gates, g)
	return g
}

// now returns the current record at the authority. It needs CanUseAuthority.
func (w *world) now() lease.Record {
	w.Helper()
	res, err := lease.Inspect(w.ctx, w.direct, w.name)
	w.need(err, "a read of the lease by the suite")
	w.history.printf("== %s", outcomeText(res.Record, nil))
	return res.Record
}

// requireFree requires that the lease is free. If no record can be read, a new holder must get the lease.
func (w *world) requireFree(when string) {
	w.Helper()
	if w.direct == nil {
		c := w.join(Holder{Owner: "another, " + when})
		c.acquire()
		w.need(c.release(), "release")
	} else if r := w.now(); r.State.Locked() {
		w.Errorf("%s the lease is %s", when, outcomeText(r, nil))
	}
}

// answer lets f change the answers of the authority. The history contains each changed answer.
func (w *world) answer(f func(req lease.Request, res *lease.Result, err *error)) {
	w.direct = leasefault.Answer(w.direct, func(req lease.Request, res *lease.Result, err *error) {
		was := answerText(*res, *err)
		f(req, res, err)
		if is := answerText(*res, *err); is != was {
			w.history.printf("== the suite changes the answer to %s: %s", requestText(req), is)
		}
	})
}

// revoke breaks the lease with the given period, as an operator would.
func (w *world) revoke(period time.Duration) {
	w.Helper()
	w.history.printf("== a third party breaks it, period %v", period)
	if w.Options.Lease.Revoke != nil {
		w.Options.Lease.Revoke(w.TB, w.name, period)
		return
	}
	_, err := lease.Break(w.ctx, w.direct, w.name, lease.Grace(period))
	w.need(err, "a break by a third party")
}

// A contender is a lease under test, with a record of its requests and losses.
type contender struct {
	lease.Lease
	w        *world
	who      string
	name     string // the name of the lease
	requests *requestLog
	clock    *leasefault.Clock // the clock of the lease, if the rule controls it
	lost     *lossLog

	mending sync.Mutex
	mends   func() // undoes the current fault; nil if there is no fault
}

// join makes a lease under test for the holder h, with defaults for the zero fields of h. The given lines
// inject faults into the requests of the lease, as in leasefault.Script.
func (w *world) join(h Holder, lines ...leasefault.Line[lease.Action]) *contender {
	w.Helper()
	p := &contender{w: w, who: h.Owner, lost: new(lossLog)}
	if p.who == "" {
		p.who = "unnamed"
	}
	if h.Name == "" {
		h.Name = w.name
	}
	if h.Duration == 0 {
		h.Duration = w.D
	}
	if h.Clock == nil && !w.can(canCut) && w.can(CanUseClock) {
		p.clock = leasefault.NewClock() // the only way to influence this lease
		h.Clock = p.clock
	}
	p.name = h.Name
	p.requests = newRequestLog(w.history, p.who)
	if w.direct != nil {
		p.requests.Authority = leasefault.Script(w.direct, slices.Insert(lines, 0, leasefault.Always(leasefault.Any, leasefault.If(p.requests.down.Load, leasefault.FailRequest)))...)
		h.Authority = wrap.Authority(p.requests, p.requests.Authority)
	}
	p.Lease = w.suite.newLease(w.TB, h)
	w.checkMade(p.Lease, "newLease")
	w.Cleanup(func() {
		w.end.Do(func() { close(w.over) })
		for _, g := range w.gates {
			g.Open()
		}
		p.mend()
	})
	p.OnLost(func(err error) {
		w.history.printf("%s: OnLost: %v", p.who, err)
		p.lost.handle(err)
	})
	return p
}

// acquire acquires the lease and returns its token. The rule fails if the lease is not granted.
func (p *contender) acquire() lease.Token {
	p.w.Helper()
	tok, ok, err := p.tryAcquire(p.w.ctx)
	if !ok || err != nil {
		p.w.Fatalf("%s: Acquire of a free lease: %v, %v", p.who, ok, err)
	}
	if !p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is false after an Acquire that was granted", p.who)
	}
	return tok
}

// The method stillAlive calls CheckAlive for a loop that waits for the end of a lease. If the current rule
// has already taken more than 100 times the duration of a lease, and the lease is still alive, the rule
// fails.
func (p *contender) stillAlive() bool {
	p.w.Helper()
	alive, most := p.CheckAlive(), 100*p.w.D
	if alive && time.Since(p.w.began) > most {
		p.w.Fatalf("%s: CheckAlive is still true %v after the rule began", p.who, most)
	}
	return alive
}

func (p *contender) tryAcquire(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := lease.AcquireWithToken(ctx, p.Lease)
	p.w.history.printf("%s: Acquire: %v, %v", p.who, ok, err)
	return tok, ok, err
}

// requireDenied requires that Acquire returns false and a nil error, because another holder has the lease.
func (p *contender) requireDenied(why string) {
	p.w.Helper()
	if _, ok, err := p.tryAcquire(p.w.ctx); ok || err != nil {
		p.w.Fatalf("%s: Acquire of a lease %s: %v, %v; it must be false, nil", p.who, why, ok, err)
	}
	p.requireNotAlive("after an Acquire that returned false")
}

func (p *contender) requireError(ctx context.Context, why string) error {
	p.w.Helper()
	_, ok, err := p.tryAcquire(ctx)
	if ok || err == nil {
		p.w.Fatalf("%s: Acquire %s: %v, %v; it must be false and an error", p.who, why, ok, err)
	}
	p.requireNotAlive("after an Acquire that returned an error")
	return err
}

func (p *contender) release() error {
	err := p.Release(p.w.ctx)
	p.w.history.printf("%s: Release: %v", p.who, err)
	return err
}

func (p *contender) requireAlive(when string) {
	p.w.Helper()
	if !p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is false %s", p.who, when)
	}
}

func (p *contender) requireNotAlive(when string) {
	p.w.Helper()
	if p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is true %s", p.who, when)
	}
}

// requireToken requires that an acquire returns the token tok, which the contender holds.
func (p *contender) requireToken(tok lease.Token) {
	p.w.Helper()
	if again := p.acquire(); again != tok {
		p.w.Errorf("%s: the token was %q, and is %q", p.who, tok, again)
	}
}

// requireNotAliveFor requires that CheckAlive returns false until d has passed.
func (p *contender) requireNotAliveFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.requireNotAlive(since)
		p.w.pass(d / 20)
	}
	p.requireNotAlive(since)
}

// requireAliveFor requires that CheckAlive returns true until d has passed.
func (p *contender) requireAliveFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.requireAlive(since)
		p.w.pass(d / 20)
	}
	p.requireAlive(since)
}

// sentAt returns the time at which the contender sent its n-th request with the given action. The first of
// these requests has the number 1.
func (p *contender) sentAt(a lease.Action, n int) time.Time {
	p.w.Helper()
	all := p.requests.sentOf(a)
	if len(all) < n {
		p.w.Fatalf("%s: %d requests to %v were sent by now, and the rule waits for number %d", p.who, len(all), a, n)
	}
	return all[n-1].at
}

// A lossLog stores the errors that the lease passes to a handler registered with OnLost.
type lossLog struct {
	mu   sync.Mutex
	errs []error
}

func (l *lossLog) handle(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *lossLog) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.errs...)
}

// The method awaitLosses waits until the lease has been lost n times, and returns the last loss. The rule
// fails if the lease has been lost more than n times, or if the wait takes too long.
func (p *contender) awaitLosses(n int) error {
	p.w.Helper()
	for deadline := time.Now().Add(p.w.eventTimeout()); len(p.lost.all()) < n && time.Now().Before(deadline); {
		p.w.pass(p.w.Unit / 10)
	}
	return p.requireLosses(n)
}

func (p *contender) requireLosses(n int) error {
	p.w.Helper()
	errs := p.lost.all()
	if len(errs) != n {
		p.w.Fatalf("%s: OnLost was called %d times, and must be called %d times: %v", p.who, len(errs), n, errs)
	}
	if n == 0 {
		return nil
	}
	return errs[n-1]
}

// requireLost requires that CheckAlive returns false and that the n-th loss is reported, as by requireLostError.
func (p *contender) requireLost(n int, when string, tok lease.Token, reasons ...lease.Code) {
	p.w.Helper()
	p.requireNotAlive(when)
	p.requireLostError(p.awaitLosses(n), tok, reasons...)
}

func (p *contender) loseNth(n int) {
	p.w.Helper()
	p.lose()
	p.w.pass(p.w.D + p.w.Slack)
	p.awaitLosses(n)
}

// requireLostError requires that err is a *lease.LostError with the given token and one of the given reasons.
func (p *contender) requireLostError(err error, tok lease.Token, reasons ...lease.Code) {
	p.w.Helper()
	lost := (*lease.LostError)(nil)
	if !errors.As(err, &lost) {
		p.w.Errorf("%s: OnLost was called with %T (%v), and must be called with a *lease.LostError", p.who, err, err)
		return
	}
	if lost.Name != p.name {
		p.w.Errorf("%s: the loss is of the lease %q, and must be of %q", p.who, lost.Name, p.name)
	}
	if p.w.can(hasToken) && lost.Token != tok {
		p.w.Errorf("%s: the loss is of token %q, and the term had %q", p.who, lost.Token, tok)
	}
	for _, r := range reasons {
		if lost.Reason == r {
			return
		}
	}
	p.w.Errorf("%s: the reason is %q, and must be of %v", p.who, lost.Reason, fmt.Sprint(reasons))
}
