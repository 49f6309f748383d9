package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// A Holder is what an actor needs of its lease; a Session is one.
type Holder interface {
	lease.TokenAcquirer
	lease.Waiter
	WhileHeld(context.Context) (context.Context, context.CancelFunc)
	Close(context.Context) error
	ID() lease.ID
}

// An actor is one holder with a clock and a network of its own, and the work it does under
// the lease.
type actor struct {
	*world
	who     string
	lease   Holder
	clock   *leasetest.Clock
	network atomic.Pointer[leasetest.Fault] // what befalls its calls; nil: nothing
	hasty   atomic.Bool                     // it gives its calls no time

	newest lease.Token // that it has acquired; under the world's mutex

	mu     sync.Mutex
	rng    *rand.Rand
	paused chan struct{} // closed when it resumes; nil: it runs
	told   map[lease.Token]int
	ended  map[lease.Token]bool // that were released, and not lost
}

func newActor(w *world, i int, authority lease.Authority) *actor {
	a := &actor{
		world: w, who: fmt.Sprintf("holder %d", i), clock: leasetest.NewClock(), told: map[lease.Token]int{}, ended: map[lease.Token]bool{},
		rng: rand.New(rand.NewPCG(w.Seed, uint64(10+i))),
	}
	a.clock.Rate(1 + clockRate/2*(2*a.float()-1))
	authority = leasetest.Script(authority, leasetest.Always(leasetest.Any, a.travel))
	if w.Authority != nil {
		authority = w.Authority(authority)
	}
	s, err := session.New(authority, name, &session.Options{
		Owner: a.who, Duration: duration, ClockRate: clockRate, Clock: a.clock, Rand: a,
		Trace: &session.Trace{Acquire: a.acquired, Renew: a.renewed},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a.lease = s
	if w.Holder != nil {
		a.lease = w.Holder(s)
	}
	a.lease.OnLost(a.lost)
	return a
}

// Read is the randomness of the session.
func (a *actor) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range p {
		p[i] = byte(a.rng.Uint32())
	}
	return len(p), nil
}

func (a *actor) float() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rng.Float64()
}

// travel takes a call to the authority and back: there is always some way to go, a paused
// holder neither sends nor hears, and the rest is the network's.
func (a *actor) travel(ctx context.Context, c *leasetest.Call) error {
	a.running()
	time.Sleep(time.Duration(a.float() * float64(latency)))
	var err error
	if f := a.network.Load(); f != nil {
		err = (*f)(ctx, c)
	} else {
		_ = c.Send(ctx)
	}
	time.Sleep(time.Duration(a.float() * float64(latency)))
	a.running()
	return err
}

// running waits while the actor is paused.
func (a *actor) running() {
	a.mu.Lock()
	paused := a.paused
	a.mu.Unlock()
	if paused != nil {
		<-paused
	}
}

func (a *actor) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused == nil {
		a.paused = make(chan struct{})
		a.clock.Pause()
	}
}

func (a *actor) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
		a.clock.Resume()
	}
}

// sleep passes time for the actor: while it is paused it does not wake.
func (a *actor) sleep(ctx context.Context, lo, hi time.Duration) bool {
	select {
	case <-a.clock.After(lo + time.Duration(a.float()*float64(hi-lo))):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// live contends, works and releases, again and again.
func (a *actor) live(ctx context.Context) {
	for a.sleep(ctx, 0, 5*time.Second) {
		within, cancel := a.patience(ctx)
		if tok, err := session.Acquire(within, a.lease, &session.RunOptions{Clock: a.clock, Rand: a}); err == nil {
			a.term(ctx, tok)
		}
		cancel()
	}
}

// patience bounds a call; that of a hasty actor may end at any point.
func (a *actor) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.hasty.Load() {
		return context.WithTimeout(ctx, time.Duration(a.float()*float64(4*latency)))
	}
	return context.WithCancel(ctx)
}

// term is the work and the release.
func (a *actor) term(ctx context.Context, tok lease.Token) {
	held, done := a.lease.WhileHeld(ctx)
	defer done()
	a.work(held, tok)
	if a.tellings(tok) > 0 && held.Err() == nil && a.excluded&order == 0 {
		a.violate(otherwise, "%s: the loss of %s was told, and the context of its work has not ended", a.who, tok)
	}
	lost := (*lease.LostError)(nil)
	if errors.As(context.Cause(held), &lost) {
		a.expectTold(lost.Token)
	}
	within, cancel := a.patience(ctx)
	defer cancel()
	_ = a.lease.Release(within) // its outcome may be unknown; the belief ends all the same
	if a.lease.CheckAlive() {
		a.violate(otherwise, "%s: alive after a release", a.who)
	}
	if errors.Is(context.Cause(held), lease.ErrReleased) {
		a.released(tok)
	}
}

// released notes that a release took effect before any loss.
func (a *actor) released(tok lease.Token) {
	a.mu.Lock()
	a.ended[tok] = true
	a.mu.Unlock()
	if n := a.tellings(tok); n > 0 && a.excluded&order == 0 {
		a.violate(otherwise, "%s: %s was released, and a loss was told %d times", a.who, tok, n)
	}
}

// tellings is how often the loss of that token was told.
func (a *actor) tellings(tok lease.Token) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told[tok]
}

// work reads, thinks and writes under the lease for a while. A careless holder does not
// look whether it still holds: that is what the guard is for.
func (a *actor) work(ctx context.Context, tok lease.Token) {
	if !a.NoAdvance && a.resource.guard.Advance(tok) != nil {
		return
	}
	for range 1 + int(a.float()*5) {
		seen := a.resource.read()
		if !a.sleep(context.WithoutCancel(ctx), 0, duration/2) { // it does not listen while it thinks
			return
		}
		if careful := a.float() < 0.5; careful && !a.lease.CheckAlive() {
			return
		}
		a.write(tok, seen)
	}
	a.sleep(ctx, 0, duration)
}

// expectTold checks that a loss that ended the context is told to the handlers too.
func (a *actor) expectTold(tok lease.Token) {
	time.Sleep(time.Nanosecond) // the handlers run at the same instant
	a.mu.Lock()
	defer a.mu.Unlock()
	if times := a.told[tok]; times == 0 || times > 1 && a.excluded&order == 0 {
		a.violate(otherwise, "%s: the loss of %s was told %d times", a.who, tok, a.told[tok])
	}
}

func (a *actor) acquired(info session.AcquireInfo) {
	if info.Token == "" {
		return
	}
	w := a.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Acquired++
	// Of two holders the older grant may be answered later, once it has been broken.
	if by, twice := w.tokens[info.Token]; (twice || info.Token.Compare(a.newest) <= 0) && w.excluded&order == 0 {
		w.count(order, "%s: acquired with token %s (before: %s, this one by %q)", a.who, info.Token, a.newest, by)
	}
	w.tokens[info.Token], a.newest = a.who, max(info.Token, a.newest)
}

func (a *actor) renewed(info session.RenewInfo) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if info.Err == nil {
		a.world.report.Renewed++
	}
}

func (a *actor) lost(err error) {
	lost := (*lease.LostError)(nil)
	if !errors.As(err, &lost) {
		a.violate(otherwise, "%s: a loss without a reason: %v", a.who, err)
		return
	}
	a.mu.Lock()
	a.told[lost.Token]++
	times, ended := a.told[lost.Token], a.ended[lost.Token]
	a.mu.Unlock()
	a.world.mu.Lock()
	a.world.report.Lost++
	by := a.world.tokens[lost.Token]
	a.world.mu.Unlock()
	if a.excluded&order == 0 && ended {
		a.violate(otherwise, "%s: %s was released, and then told as lost", a.who, lost.Token)
	}
	if a.excluded&order == 0 && (times > 1 || by != a.who) {
		a.violate(otherwise, "%s: the loss of %s (acquired by %q) was told %d times", a.who, lost.Token, by, times)
	}
}
