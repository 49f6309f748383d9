package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
	"github.com/fencedlease/lease/leasefault"
)

// A contender is a lease under test. It also records the requests and the losses of that lease.
type contender struct {
	lease.Lease
	w        *world
	who      string
	name     string // the name of the lease
	requests *requests
	clock    *leasefault.Clock // the clock of the lease, if the rule controls it
	lost     *losses

	mending sync.Mutex
	mends   func() // undoes the current fault; nil if there is no fault
}

// join makes a lease under test for the holder h. The lines of a script apply faults to the
// requests of the lease. Fields of h that are zero get defaults.
func (w *world) join(h Holder, lines ...leasefault.Line[lease.Action]) *contender {
	w.Helper()
	p := &contender{w: w, who: h.Owner, lost: new(losses)}
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
	p.requests = newRequests(w.history, p.who)
	if w.direct != nil {
		p.requests.Authority = leasefault.Script(w.direct, slices.Insert(lines, 0, leasefault.Always(leasefault.Any, leasefault.If(p.requests.down.Load, leasefault.FailRequest)))...)
		h.Authority = passon.Authority(p.requests, p.requests.Authority)
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

// acquire calls Acquire, requires that it is granted, and returns the token.
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

func (p *contender) tryAcquire(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := lease.AcquireWithToken(ctx, p.Lease)
	p.w.history.printf("%s: Acquire: %v, %v", p.who, ok, err)
	return tok, ok, err
}

// requireDenied requires that Acquire returns false and a nil error, as it does if another holder
// has the lease.
func (p *contender) requireDenied(why string) {
	p.w.Helper()
	if _, ok, err := p.tryAcquire(p.w.ctx); ok || err != nil {
		p.w.Fatalf("%s: Acquire of a lease %s: %v, %v; it must be false, nil", p.who, why, ok, err)
	}
	p.dead("after an Acquire that returned false")
}

// requireError requires that Acquire returns an error, and returns that error.
func (p *contender) requireError(ctx context.Context, why string) error {
	p.w.Helper()
	_, ok, err := p.tryAcquire(ctx)
	if ok || err == nil {
		p.w.Fatalf("%s: Acquire %s: %v, %v; it must be false and an error", p.who, why, ok, err)
	}
	p.dead("after an Acquire that returned an error")
	return err
}

func (p *contender) release() error {
	err := p.Release(p.w.ctx)
	p.w.history.printf("%s: Release: %v", p.who, err)
	return err
}

func (p *contender) alive(when string) {
	p.w.Helper()
	if !p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is false %s", p.who, when)
	}
}

func (p *contender) dead(when string) {
	p.w.Helper()
	if p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is true %s", p.who, when)
	}
}

// deadFor requires that CheckAlive keeps returning false until d has passed.
func (p *contender) deadFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.dead(since)
		p.w.pass(d / 20)
	}
	p.dead(since)
}

// aliveFor requires that CheckAlive keeps returning true until d has passed.
func (p *contender) aliveFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.alive(since)
		p.w.pass(d / 20)
	}
	p.alive(since)
}

// sentAt returns the time at which the n-th request of the given action was sent, counted from 1.
// It requires that at least n such requests have been sent.
func (p *contender) sentAt(a lease.Action, n int) time.Time {
	p.w.Helper()
	all := p.requests.sentOf(a)
	if len(all) < n {
		p.w.Fatalf("%s: %d requests to %v were sent by now, and the rule waits for number %d", p.who, len(all), a, n)
	}
	return all[n-1].at
}

// losses collects the errors that are passed to a handler of OnLost.
type losses struct {
	mu   sync.Mutex
	errs []error
}

func (l *losses) handle(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *losses) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.errs...)
}

// requireLosses waits until the lease has been lost n times, and requires that it has not been lost
// more often. It returns the error of the last loss.
func (p *contender) requireLosses(n int) error {
	p.w.Helper()
	for deadline := time.Now().Add(p.w.eventTimeout()); len(p.lost.all()) < n && time.Now().Before(deadline); {
		p.w.pass(p.w.Unit / 10)
	}
	return p.lostSoFar(n)
}

func (p *contender) lostSoFar(n int) error {
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

// loseOnce makes the contender lose its lease, and requires that the contender has then lost its
// lease n times in all.
func (p *contender) loseOnce(n int) {
	p.w.Helper()
	p.lose()
	p.w.pass(p.w.D + p.w.Slack)
	p.requireLosses(n)
}

// requireLostError requires that err is a *lease.LostError for the given token, with one of the
// given reasons.
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
		p.w.Errorf("%s: the loss is of token %q, and the incarnation had %q", p.who, lost.Token, tok)
	}
	for _, r := range reasons {
		if lost.Reason == r {
			return
		}
	}
	p.w.Errorf("%s: the reason is %q, and must be of %v", p.who, lost.Reason, fmt.Sprint(reasons))
}
