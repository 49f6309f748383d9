package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

// A Holder has the methods of a lease that an actor uses. A Session implements it.
type Holder interface {
	lease.TokenAcquirer
	lease.Waiter
	WhileHeld(context.Context) (context.Context, context.CancelFunc)
	Close(context.Context) error
	ID() lease.ID
}

// An actor is one holder with its own clock and network, and the work that it does under the lease.
type actor struct {
	*world
	who     string
	lease   Holder
	clock   *leasefault.Clock
	network atomic.Pointer[callFault] // the fault of the actor's calls; nil if there is no fault
	hasty   atomic.Bool               // the contexts of its calls may end at any point

	work, contest, requests, reads, watches, storage *dice

	newest          lease.Token // the newest token that the actor has acquired; the world's mutex guards newest, working and prompt
	working, prompt bool        // the actor works now; it stops as soon as its context ends

	mu       sync.Mutex
	paused   chan struct{} // closed when the actor resumes; nil if the actor is not paused
	resumed  time.Time     // when the actor last resumed
	notified map[lease.Token]int
	ended    map[lease.Token]bool // the tokens of leases that were released, and not lost
}

func newActor(w *world, i int, rate float64, store lease.Store) *actor {
	a := &actor{
		world: w, who: fmt.Sprintf("holder %d", i), clock: leasefault.NewClock(), notified: map[lease.Token]int{}, ended: map[lease.Token]bool{},
		work: w.dice(work, i), contest: w.dice(contest, i),
		requests: w.dice(requests, i), reads: w.dice(reads, i), watches: w.dice(watches, i), storage: w.dice(storage, i),
	}
	a.clock.Rate(rate)
	slow := leasefault.ScriptStore(store, leasefault.Always(leasefault.LoadOrSwap, a.interleave))
	authority := leasefault.Script(lease.NewAuthority(slow), leasefault.Always(leasefault.Any, a.transport))
	authority = leasefault.Lossy(authority, a.loseSignals)
	if w.Authority != nil {
		authority = w.Authority(authority)
	}
	s, err := session.New(authority, name, &session.Options{
		Owner: a.who, Duration: duration, StopWindow: w.StopWindow, Logger: slog.New(slog.DiscardHandler), MaxClockDrift: clockRate, Clock: a.clock, Rand: w.dice(identity, i),
		Watch: a.watches.float() < 0.5,
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

// interleave delays a load or a swap, so that requests of other actors come between the two.
func (a *actor) interleave(ctx context.Context, c *leasefault.Call) error {
	return leasefault.DelayRequest(a.storage.upTo(latency/4))(ctx, c)
}

// transport sends a call to the authority and returns the answer. The call and its answer both take
// some time. A paused actor neither sends calls nor receives answers. If the actor's network has a
// fault, transport may apply the fault to the call.
func (a *actor) transport(ctx context.Context, c *leasefault.Call) error {
	d := a.requests
	if c.Op == lease.ActionRead.String() {
		d = a.reads
	}
	there, back, chance, delay := d.upTo(latency), d.upTo(latency), d.float(), d.float()
	before, after := d.upTo(reaction), d.upTo(reaction)
	a.running(before)
	time.Sleep(there)
	var err error
	if t := a.network.Load(); t != nil && chance < t.often {
		err = t.fault(a.world, time.Duration(delay*float64(t.most)))(ctx, c)
	} else {
		_ = c.Send(ctx)
	}
	time.Sleep(back)
	a.running(after)
	return err
}

// loseSignals is a leasefault.WatchFault. loseSignals drops about half of the signals, delays the
// other half, and ends each watch after some time.
func (a *actor) loseSignals(ctx context.Context, watch func(context.Context) (<-chan struct{}, error)) (<-chan struct{}, error) {
	for _, f := range []leasefault.WatchFault{
		leasefault.CloseWatch(a.watches.upTo(10 * duration)),
		leasefault.LoseSignals(a.Seed, 0.5),
		leasefault.DelaySignals(a.watches.upTo(2 * latency)),
	} {
		inner := watch
		watch = func(ctx context.Context) (<-chan struct{}, error) { return f(ctx, inner) }
	}
	return watch(ctx)
}

// running waits while the actor is paused, and then waits for the time that the actor needs to wake
// up.
func (a *actor) running(wake time.Duration) {
	a.mu.Lock()
	paused := a.paused
	a.mu.Unlock()
	if paused != nil {
		<-paused
		time.Sleep(wake)
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
		a.paused, a.resumed = nil, time.Now()
		a.clock.Resume()
	}
}

// sleep waits for a random time of at most most, or until ctx is done. If the actor is paused,
// sleep does not return before the actor resumes, unless ctx is done.
func (a *actor) sleep(ctx context.Context, most time.Duration) bool {
	select {
	case <-a.clock.After(a.work.upTo(most)):
	case <-ctx.Done():
	}
	a.react()
	return ctx.Err() == nil
}

// react waits for the reaction time of the actor.
func (a *actor) react() { time.Sleep(a.work.upTo(reaction)) }

// run repeatedly acquires the lease, works under the lease, and releases the lease.
func (a *actor) run(ctx context.Context) {
	for a.sleep(ctx, 5*time.Second) {
		within, cancel := a.callContext(ctx)
		if tok, err := session.AcquireWait(within, a.lease, &session.RunOptions{Logger: slog.New(slog.DiscardHandler), Clock: a.clock, Rand: a.contest}); err == nil {
			a.term(ctx, tok)
		}
		cancel()
	}
}

// callContext returns the context of a call. If the actor is hasty, the context may end at any
// point of the call.
func (a *actor) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.hasty.Load() {
		return context.WithTimeout(ctx, a.work.upTo(4*latency))
	}
	return context.WithCancel(ctx)
}

// term works under the lease, and then releases the lease.
func (a *actor) term(ctx context.Context, tok lease.Token) {
	held, done := a.lease.WhileHeld(ctx)
	defer done()
	prompt := a.work.float() < 0.5
	a.workBegins(prompt)
	a.react()
	a.readAndWrite(held, tok, prompt)
	a.stop(held, prompt)
	a.workEnds()
	if a.lossesReported(tok) > 0 && held.Err() == nil && a.excluded&order == 0 {
		a.violate(otherwise, "%s: the loss of %s was told, and the context of its work has not ended", a.who, tok)
	}
	lost := (*lease.LostError)(nil)
	if errors.As(context.Cause(held), &lost) && !(lost.Reason == lease.ErrStopWindow && a.lease.CheckAlive()) {
		a.expectReport(lost.Token) // the loss must have been reported by now
	}
	within, cancel := a.callContext(ctx)
	defer cancel()
	_ = a.lease.Release(within) // even if the outcome of the release is unknown, CheckAlive must return false
	if a.lease.CheckAlive() {
		a.violate(otherwise, "%s: alive after a release", a.who)
	}
	if errors.Is(context.Cause(held), lease.ErrReleased) {
		a.released(tok)
	}
}

// released records that the lease with the token tok was released before it was lost.
func (a *actor) released(tok lease.Token) {
	a.mu.Lock()
	a.ended[tok] = true
	a.mu.Unlock()
	if n := a.lossesReported(tok); n > 0 && a.excluded&order == 0 {
		a.violate(otherwise, "%s: %s was released, and a loss was told %d times", a.who, tok, n)
	}
}

// lossesReported returns how often the loss of the lease with the token tok was reported.
func (a *actor) lossesReported(tok lease.Token) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.notified[tok]
}

// readAndWrite reads, waits and writes under the lease for a while. Before about half of its
// writes, the actor does not check whether it still holds the lease. If the lease is lost, the
// guard must refuse such a write.
func (a *actor) readAndWrite(ctx context.Context, tok lease.Token, prompt bool) {
	if !a.NoAdvance && a.resource.guard.Advance(tok) != nil {
		return
	}
	for range 1 + a.work.one(5) {
		seen := a.resource.read()
		thinking := ctx
		if !prompt {
			thinking = context.WithoutCancel(ctx) // the actor does not notice while it waits that its context has ended
		}
		if !a.sleep(thinking, duration/2) {
			return
		}
		if careful := a.work.float() < 0.5; careful && !a.lease.CheckAlive() {
			return
		}
		a.write(tok, seen)
	}
	a.sleep(ctx, duration)
}

// expectReport checks that the handlers of OnLost were called for the loss of the lease with the
// token tok.
func (a *actor) expectReport(tok lease.Token) {
	time.Sleep(time.Nanosecond) // the handlers run at the same instant
	a.mu.Lock()
	defer a.mu.Unlock()
	if times := a.notified[tok]; times == 0 || times > 1 && a.excluded&order == 0 {
		a.violate(otherwise, "%s: the loss of %s was told %d times", a.who, tok, a.notified[tok])
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
	// If the older of two grants was broken, its answer may arrive after the answer of the newer
	// grant.
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
	a.notified[lost.Token]++
	times, ended := a.notified[lost.Token], a.ended[lost.Token]
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
