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

// A contender is a lease under test, with what the suite sees of it.
type contender struct {
	lease.Lease
	w        *world
	who      string
	name     string // of the lease
	requests *requests
	clock    *leasefault.Clock // if it has one of the rule's
	lost     *losses

	mending sync.Mutex
	mends   func() // undoes the fault that it has; nil: none
}

// join makes a lease under test of a holder whose requests meet the lines of a script. What
// the holder leaves open is as the rules want it.
func (w *world) join(h Holder, lines ...leasefault.Line[lease.Action]) *contender {
	w.Helper()
	p := &contender{w: w, who: h.Owner, lost: new(losses)}
	if p.who == "" {
		p.who = "somebody"
	}
	if h.Name == "" {
		h.Name = w.name
	}
	if h.Duration == 0 {
		h.Duration = w.D
	}
	if h.Clock == nil && !w.can(canCut) && w.can(CanUseClock) {
		p.clock = leasefault.NewClock() // it is all that the rules can reach
		h.Clock = p.clock
	}
	p.name = h.Name
	p.requests = newRequests(w.history, p.who)
	if w.direct != nil {
		p.requests.Authority = leasefault.Script(w.direct, slices.Insert(lines, 0, leasefault.Always(leasefault.Any, leasefault.If(p.requests.down.Load, leasefault.FailRequest)))...)
		h.Authority = passon.Authority(p.requests, p.requests.Authority)
	}
	p.Lease = w.suite.newLease(w.TB, h)
	w.made(p.Lease, "newLease")
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

// acquire calls Acquire and requires what it returns.
func (p *contender) acquire() lease.Token {
	p.w.Helper()
	tok, ok, err := p.tryAcquire(p.w.ctx)
	if !ok || err != nil {
		p.w.Fatalf("%s: Acquire of a lease that is free: %v, %v", p.who, ok, err)
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

// denied requires that Acquire says another has it.
func (p *contender) denied(why string) {
	p.w.Helper()
	if _, ok, err := p.tryAcquire(p.w.ctx); ok || err != nil {
		p.w.Fatalf("%s: Acquire of a lease %s: %v, %v; it must be false, nil", p.who, why, ok, err)
	}
	p.dead("after an Acquire that returned false")
}

// fails requires that Acquire says nothing certain.
func (p *contender) fails(ctx context.Context, why string) error {
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

// deadFor requires that it is and stays dead for d.
func (p *contender) deadFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.dead(since)
		p.w.pass(d / 20)
	}
	p.dead(since)
}

// aliveFor requires that it is and stays alive for d.
func (p *contender) aliveFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.alive(since)
		p.w.pass(d / 20)
	}
	p.alive(since)
}

// sent is when the n-th request of that action was sent, counted from 1, which it must be by now.
func (p *contender) sent(a lease.Action, n int) time.Time {
	p.w.Helper()
	all := p.requests.of(a)
	if len(all) < n {
		p.w.Fatalf("%s: %d requests to %v were sent by now, and the rule waits for number %d", p.who, len(all), a, n)
	}
	return all[n-1].at
}

// losses are the errors that a handler of OnLost was called with.
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

// lostTimes waits for the n-th loss, and requires that there is no other.
func (p *contender) lostTimes(n int) error {
	p.w.Helper()
	for deadline := time.Now().Add(p.w.patience()); len(p.lost.all()) < n && time.Now().Before(deadline); {
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

// isLost brings about a loss, and requires that it is reported as the n-th.
func (p *contender) isLost(n int) {
	p.w.Helper()
	p.lose()
	p.w.pass(p.w.D + p.w.Slack)
	p.lostTimes(n)
}

// lostError requires that a handler was called with a *lease.LostError with one of the reasons.
func (p *contender) lostError(err error, tok lease.Token, reasons ...lease.Code) {
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
