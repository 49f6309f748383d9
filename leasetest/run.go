package leasetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/session"
)

var runRules = []rule{
	{"N1/a-loss-ends-the-function", "the context of a function ends with a loss, and a run whose function was ended so returns the loss, whatever the function returns", canLose, func(p *tester) {
		a, own := p.world().join(Holder{Owner: "a"}), errors.New("the function failed")
		a.loseInRun(func(ctx context.Context, _ func()) error { return context.Cause(ctx) })
		a.loseInRun(func(_ context.Context, end func()) error { end(); return nil }) // the context of the caller ends after the loss
		if err := a.loseInRun(func(context.Context, func()) error { return own }); !errors.Is(err, own) {
			p.Errorf("Run returned %v, and the function returned %v", err, own)
		}
	}},
	{"N1/a-loss-that-nothing-noticed-is-part-of-what-the-run-returns", "a run whose function ends after the lease returns the loss, even if nothing had noticed the loss before", CanUseClock | hasWhileHeld, func(p *tester) {
		clock := leasefault.NewClock()
		a := p.world().join(Holder{Owner: "a", Clock: clock})
		err := session.Run(p.ctx, a.Lease, func(context.Context, lease.Token) error {
			clock.Pause() // no timer of the holder runs
			clock.Step(p.D + p.Slack)
			return nil
		}, silentOptions)
		clock.Resume()
		if lost := (*lease.LostError)(nil); !errors.As(err, &lost) {
			p.Errorf("the function ended after the lease, and Run returned %v", err)
		}
	}},
	{"N1/a-run-does-not-contend-again-after-a-take-over", "a run whose lease was taken over returns the loss, and does not contend again, even if the caller lets it", CanTakeOver | CanChange | CanShowRecords | CanUseAuthority | exactTime, func(p *tester) {
		w := p.world()
		a, b := w.join(Holder{Owner: "same", TakeOver: true}), w.join(Holder{Owner: "same", TakeOver: true})
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		var terms atomic.Int32
		ended := make(chan error, 1)
		go p.guarded(func() {
			ended <- session.Run(ctx, a.Lease, func(ctx context.Context, _ lease.Token) error {
				terms.Add(1)
				<-ctx.Done()
				return nil
			}, &session.RunOptions{Logger: silentOptions.Logger, AcquireInterval: p.Unit, Again: func(error) bool { return true }})
		})()
		p.pass(p.D / 4)
		b.acquire()
		p.pass(2 * p.D)
		select {
		case err := <-ended:
			if lost := (*lease.LostError)(nil); !errors.As(err, &lost) {
				p.Errorf("the lease was taken over, and Run returned %v", err)
			}
		default:
			p.Errorf("the lease was taken over, and Run goes on")
		}
		if n := terms.Load(); n != 1 {
			p.Errorf("the function was called %d times", n)
		}
		b.requireAliveFor(p.D, "after it has taken over from a run")
		b.requireLosses(0)
	}},
	{"N2/renewed-until-the-function-returns", "the lease is renewed until the function has returned, though its context ended before, and then released", 0, func(p *tester) {
		_, a, b := p.two()
		ctx, cancel := context.WithCancel(p.ctx)
		_ = session.Run(ctx, a.Lease, func(context.Context, lease.Token) error {
			cancel()
			a.requireAliveFor(2*p.D, "while the function runs on")
			b.requireDenied("under which a function runs")
			return nil
		}, silentOptions)
		a.requireNotAlive("after the run")
		b.acquire()
	}},
	{"N3/a-panic-leaves-no-lease", "the lease of a function that panicked is free at once", 0, func(p *tester) {
		_, a, b := p.two()
		func() {
			defer func() { _ = recover() }()
			_ = session.Run(p.ctx, a.Lease, func(context.Context, lease.Token) error { panic("a function of the suite panics") }, silentOptions)
		}()
		a.requireNotAlive("after a panic")
		b.acquire()
		a.requireLosses(0)
	}},
	{"N3/an-attempt-without-an-answer-leaves-no-lease", "a run that gives up after acquires without an answer releases what they may have got, or returns the error of that release", CanUseAuthority | exactTime, func(p *tester) {
		held := func(context.Context, *leasefault.Call) error { return lease.ErrHeldByOther }
		for i, script := range [][]leasefault.Line[lease.Action]{
			{leasefault.Always(lease.ActionAcquire, leasefault.FailAnswer)},
			{leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer), leasefault.From(2, lease.ActionAcquire, held)},
			{leasefault.Always(lease.ActionAcquire, answerUnknown(lease.ErrConflict))},
			{leasefault.Always(lease.ActionAcquire, answerUnknown(lease.ErrCorrupt))},
			{leasefault.Always(lease.ActionAcquire, leasefault.FailAnswer), leasefault.Always(lease.ActionRelease, leasefault.FailRequest)},
		} {
			w := p.worldOf(fmt.Sprint(p.name, i))
			a := w.join(Holder{Name: w.name, Owner: "a"}, script...)
			ctx, cancel := context.WithTimeout(p.ctx, p.D/4)
			err := session.Run(ctx, a.Lease, func(context.Context, lease.Token) error {
				p.Errorf("the function runs, and no acquire was answered")
				return nil
			}, silentOptions)
			cancel()
			p.history.printf("a: Run: %v", err)
			a.requireNotAlive("after the run")
			if i < 4 {
				w.requireFree("after a run that gave up")
				ctx, cancel := context.WithTimeout(p.ctx, p.D/4)
				_, err := session.AcquireWait(ctx, a.Lease, silentOptions)
				cancel()
				p.history.printf("a: AcquireWait: %v", err)
				p.pass(p.Unit / 10) // AcquireWait returns before the release is answered
				w.requireFree("after an AcquireWait that gave up")
			} else if err == nil || !strings.Contains(err.Error(), "release") {
				p.Errorf("the release failed, and the run returned %v", err)
			}
		}
	}},
	{"N3/a-single-attempt-without-an-answer-leaves-no-lease", "a run that makes one attempt, and gets no answer, releases what it may have got", CanUseAuthority, func(p *tester) {
		for i, fault := range []leasefault.Fault{leasefault.FailAnswer, answerUnknown(lease.ErrConflict), answerUnknown(lease.ErrCorrupt)} {
			w := p.worldOf(fmt.Sprint(p.name, i))
			a := w.join(Holder{Owner: "a"}, leasefault.Always(lease.ActionAcquire, fault))
			ran, err := session.TryRun(p.ctx, a.Lease, func(context.Context, lease.Token) error {
				p.Errorf("the function runs, and no acquire was answered")
				return nil
			}, silentOptions)
			p.history.printf("a: TryRun: %v, %v", ran, err)
			if ran || err == nil {
				p.Errorf("no acquire was answered, and TryRun returned %v, %v", ran, err)
			}
			w.requireFree("after a run that gave up")
		}
	}},
	{"N3/a-release-that-failed-is-part-of-what-the-run-returns", "a run whose release failed returns an error that is not the function's alone, even if its context ended", canCut, func(p *tester) {
		w, own := p.world(), errors.New("the function failed")
		for i, failed := range []error{nil, own, nil, own} {
			a := w.join(Holder{Name: fmt.Sprint(p.name, i), Owner: "a"})
			ctx, cancel := context.WithCancel(p.ctx)
			err := session.Run(ctx, a.Lease, func(context.Context, lease.Token) error {
				a.cut()
				if i >= 2 {
					cancel()
				}
				return failed
			}, &session.RunOptions{Logger: silentOptions.Logger, ReleaseTimeout: p.D / 4})
			cancel()
			a.mend()
			if err == failed || failed != nil && !errors.Is(err, failed) {
				p.Errorf("the release failed, the function returned %v, and the run %v", failed, err)
			}
		}
	}},
	{"N1/a-single-attempt-runs-nothing-beside-a-living-holder", "a run that makes one attempt does not call its function while another holder lives, even if the refusal does not show that", CanUseAuthority | CanShowRecords, func(p *tester) {
		w, a := p.one()
		a.acquire()
		var reads atomic.Int32 // the reads that the other holder has sent
		w.answer(func(req lease.Request, res *lease.Result, err *error) {
			if req.Action == lease.ActionRead {
				reads.Add(1)
			}
			if *err != nil || reads.Load() == 1 { // as if the store had no clock, and had not seen a renewal yet
				res.MinRemaining = 0
			}
		})
		b := w.join(Holder{Owner: "b"})
		ran, err := session.TryRun(p.ctx, b.Lease, func(context.Context, lease.Token) error {
			p.Errorf("the function runs, and another holder has the lease")
			return nil
		}, silentOptions)
		p.history.printf("b: TryRun: %v, %v", ran, err)
		if ran || err != nil {
			p.Errorf("another holder has the lease, and TryRun returned %v, %v", ran, err)
		}
		a.requireAliveFor(p.D/4, "after another tried to run")
	}},
	{"N4/woken-contenders-are-spread", "contenders that run functions and are woken by one release do not acquire at the same time", CanUseAuthority | hasWait | exactTime, func(p *tester) {
		const crowd = 10
		w := p.world()
		first := w.join(Holder{Owner: "first"})
		first.acquire()
		all, end := w.crowd(crowd)
		p.pass(p.D * 2)
		p.need(first.release(), "release")
		released := time.Now()
		p.pass(p.D)
		end()
		if n := instantsOfAcquires(all, released); n < crowd/2 {
			p.Errorf("%d contenders were woken at once, and their next acquires came in %d instants", crowd, n)
		}
	}},
	{"N4/contenders-are-spread-after-errors", "contenders that run functions, and whose first acquires failed at the same time, do not go on acquiring at the same time", CanUseAuthority | exactTime, func(p *tester) {
		const crowd = 10
		all, end := p.world().crowd(crowd, leasefault.Always(lease.ActionAcquire, leasefault.FailRequest))
		p.pass(p.D / 100)
		failed := time.Now()
		p.pass(2 * p.D)
		end()
		if n := instantsOfAcquires(all, failed); n < crowd/2 {
			p.Errorf("the first acquires of %d contenders failed at once, and their next ones came in %d instants", crowd, n)
		}
	}},
}

// The method crowd makes n contenders, which call session.Run with a function that returns at once. The function
// end ends the runs.
func (w *world) crowd(n int, lines ...leasefault.Line[lease.Action]) (all []*contender, end func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	var runs sync.WaitGroup
	for i := range n {
		one := w.join(Holder{Owner: fmt.Sprint("owner-", i)}, lines...)
		all = append(all, one)
		runs.Go(w.guarded(func() {
			_ = session.Run(ctx, one.Lease, func(context.Context, lease.Token) error { return nil }, &session.RunOptions{Logger: silentOptions.Logger, AcquireInterval: w.D})
		}))
	}
	return all, func() {
		cancel()
		runs.Wait()
	}
}

// For each contender, the function instantsOfAcquires takes the first acquire that was not sent before the
// given time. It counts the different times at which these acquires were sent.
func instantsOfAcquires(all []*contender, from time.Time) int {
	instants := map[time.Time]bool{}
	for _, one := range all {
		for _, s := range one.requests.sentOf(lease.ActionAcquire) {
			if !s.at.Before(from) {
				instants[s.at] = true
				break
			}
		}
	}
	return len(instants)
}

// loseInRun runs a function with session.Run, makes the contender lose its lease during the run, and requires
// that Run reports the loss. The function waits until its context has ended, and then returns the result of
// the given function f. When f calls end, the context of the caller of Run ends.
func (p *contender) loseInRun(f func(ctx context.Context, end func()) error) error {
	p.w.Helper()
	ctx, end := context.WithCancel(p.w.ctx)
	defer end()
	lost := (*lease.LostError)(nil)
	began := time.Now()
	err := session.Run(ctx, p.Lease, func(ctx context.Context, _ lease.Token) error {
		p.lose()
		select {
		case <-ctx.Done():
		case <-time.After(p.w.D + p.w.eventTimeout()):
			p.w.Errorf("the lease is lost, and the context has not ended")
		}
		p.mend()
		return f(ctx, end)
	}, silentOptions)
	if !errors.As(err, &lost) {
		p.w.Errorf("Run returned %v after %v", err, time.Since(began))
	}
	p.requireNotAlive("after the run")
	return err
}

var silentOptions = &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}

// answerUnknown returns a Fault that executes the request but answers with err, so that the outcome is
// unknown.
func answerUnknown(err error) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		_ = c.Send(ctx)
		return err
	}
}
