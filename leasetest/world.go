package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A world is what the leases of a rule contend in: one authority, asked through a wire each.
type world struct {
	*probe
	truth lease.Authority // without faults, and outside of the history
}

// world makes the world of a rule. The truth of leases that bring their own authority
// is not known: rules that look at it need Injecting.
func (p *probe) world() *world {
	if p.Options.Authority == nil {
		return p.worldOver(memory.New(nil))
	}
	return &world{p, p.Options.Authority(p.TB)}
}

// worldOver makes a world over a store.
func (p *probe) worldOver(s lease.Store) *world { return &world{p, lease.NewAuthority(s)} }

// gate makes a gate that is opened at the end of the rule.
func (p *probe) gate() *Gate {
	g := NewGate()
	p.gates = append(p.gates, g)
	return g
}

// now is the record as the authority has it.
func (w *world) now() lease.Record {
	w.Helper()
	res, err := lease.Inspect(w.ctx, w.truth, w.name)
	w.need(err, "looking at the lease behind its holders")
	w.history.Printf("== %s", outcomeText(res.Record, nil))
	return res.Record
}

// unlocked requires that nobody has the lease.
func (w *world) unlocked(when string) {
	w.Helper()
	if r := w.now(); r.State.Locked() {
		w.Errorf("%s the lease is %s", when, outcomeText(r, nil))
	}
}

// revoke is a break by a third party.
func (w *world) revoke(period time.Duration) {
	w.Helper()
	_, err := lease.Revoke(w.ctx, w.truth, w.name, lease.In(period))
	w.need(err, "a break by a third party")
	w.history.Printf("== a third party breaks it, period %v", period)
}

// A party is a lease under test with what can be seen of it.
type party struct {
	lease.Lease
	w    *world
	who  string
	wire *wire
	lost *losses
}

// join makes a lease under test of a holder whose requests meet the lines of a script. What
// the holder leaves open is as the rules want it.
func (w *world) join(h Holder, lines ...Line[lease.Action]) *party {
	w.Helper()
	who := h.Owner
	if who == "" {
		who = "somebody"
	}
	if h.Name == "" {
		h.Name = w.name
	}
	if h.Duration == 0 {
		h.Duration = w.D
	}
	wire := &wire{h: w.history, who: who, flying: map[lease.Action]int{}, most: map[lease.Action]int{}}
	if w.Lacks&Injecting == 0 {
		wire.Authority = Script(w.truth, lines...)
		h.Over = passOn(wire, wire.Authority)
	}
	p := &party{Lease: w.suite.newLease(w.TB, h), w: w, who: who, wire: wire, lost: new(losses)}
	w.Cleanup(func() {
		for _, g := range w.gates {
			g.Open()
		}
	})
	p.OnLost(p.lost.handle)
	return p
}

// acquire calls Acquire and requires what it returns.
func (p *party) acquire() lease.Token {
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

func (p *party) tryAcquire(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := lease.AcquireWithToken(ctx, p.Lease)
	p.w.history.Printf("%s: Acquire: %v, %v", p.who, ok, err)
	return tok, ok, err
}

// denied requires that Acquire says another has it.
func (p *party) denied(why string) {
	p.w.Helper()
	if _, ok, err := p.tryAcquire(p.w.ctx); ok || err != nil {
		p.w.Errorf("%s: Acquire of a lease %s: %v, %v; it must be false, nil", p.who, why, ok, err)
	}
	p.dead("after an Acquire that returned false")
}

// fails requires that Acquire says nothing certain.
func (p *party) fails(ctx context.Context, why string) error {
	p.w.Helper()
	_, ok, err := p.tryAcquire(ctx)
	if ok || err == nil {
		p.w.Errorf("%s: Acquire %s: %v, %v; it must be false and an error", p.who, why, ok, err)
	}
	p.dead("after an Acquire that returned an error")
	return err
}

func (p *party) release() error {
	err := p.Release(p.w.ctx)
	p.w.history.Printf("%s: Release: %v", p.who, err)
	return err
}

func (p *party) alive(when string) {
	p.w.Helper()
	if !p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is false %s", p.who, when)
	}
}

func (p *party) dead(when string) {
	p.w.Helper()
	if p.CheckAlive() {
		p.w.Fatalf("%s: CheckAlive is true %s", p.who, when)
	}
}

// deadFor requires that it is and stays dead for d.
func (p *party) deadFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.dead(since)
		p.w.pass(d / 20)
	}
	p.dead(since)
}

// aliveFor requires that it is and stays alive for d.
func (p *party) aliveFor(d time.Duration, since string) {
	p.w.Helper()
	for range 20 {
		p.alive(since)
		p.w.pass(d / 20)
	}
	p.alive(since)
}

// losses are what a handler of OnLost was told.
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

// told waits for the n-th loss and requires that there is no other.
func (p *party) told(n int) error {
	p.w.Helper()
	for deadline := time.Now().Add(p.w.patience()); len(p.lost.all()) < n && time.Now().Before(deadline); {
		p.w.pass(p.w.Unit / 10)
	}
	return p.toldSoFar(n)
}

func (p *party) toldSoFar(n int) error {
	p.w.Helper()
	errs := p.lost.all()
	if len(errs) != n {
		p.w.Fatalf("%s: OnLost was told %d times, and must be %d times: %v", p.who, len(errs), n, errs)
	}
	if n == 0 {
		return nil
	}
	return errs[n-1]
}

// A wire is what a lease under test asks through: it sees every request.
type wire struct {
	lease.Authority
	h   *History
	who string

	mu      sync.Mutex
	sent    []sent
	flying  map[lease.Action]int
	most    map[lease.Action]int // that ever were in flight at once
	crossed bool                 // a release was sent while an acquire was in flight
}

type sent struct {
	lease.Request
	at   time.Time
	done bool // its context was done already
}

func (w *wire) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	w.h.Printf("%s -> %s", w.who, requestText(req))
	w.mu.Lock()
	w.sent = append(w.sent, sent{req, time.Now(), ctx.Err() != nil})
	w.flying[req.Action]++
	w.most[req.Action] = max(w.most[req.Action], w.flying[req.Action])
	w.crossed = w.crossed || req.Action == lease.Release && w.flying[lease.Acquire] > 0
	w.mu.Unlock()
	res, err := w.Authority.Do(ctx, name, req)
	w.mu.Lock()
	w.flying[req.Action]--
	w.mu.Unlock()
	w.h.Printf("%s <- %s: %s", w.who, requestText(req), outcomeText(res.Record, err))
	return res, err
}

// of returns the requests of that action, or of any, that were sent so far.
func (w *wire) of(a lease.Action) []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []sent
	for _, s := range w.sent {
		if a == Any || s.Action == a {
			found = append(found, s)
		}
	}
	return found
}

// atOnce is how many requests of that action were in flight at once.
func (w *wire) atOnce(a lease.Action) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[a]
}

// proposed is the ID of the last acquire that was sent.
func (w *wire) proposed() lease.ID {
	acquires := w.of(lease.Acquire)
	if len(acquires) == 0 {
		return lease.ID{}
	}
	return acquires[len(acquires)-1].Proposed
}

// lostError requires that a handler was told a *lease.LostError with one of the reasons.
func (p *party) lostError(err error, tok lease.Token, reasons ...lease.Code) {
	p.w.Helper()
	lost := (*lease.LostError)(nil)
	if !errors.As(err, &lost) {
		p.w.Errorf("%s: OnLost was told %T (%v), and must be told a *lease.LostError", p.who, err, err)
		return
	}
	if p.w.Lacks&Tokens == 0 && lost.Token != tok {
		p.w.Errorf("%s: the loss is of token %q, and the incarnation had %q", p.who, lost.Token, tok)
	}
	for _, r := range reasons {
		if lost.Reason == r {
			return
		}
	}
	p.w.Errorf("%s: the reason is %q, and must be of %v", p.who, lost.Reason, fmt.Sprint(reasons))
}
