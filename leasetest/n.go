package leasetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// runRules check functions that run under a lease.
var runRules = []rule{
	{"N1/one-function-at-a-time", "functions run under the lease only while it is held, and never two at once", 0, func(p *probe) {
		w := p.world()
		var running atomic.Int32
		all := make([]*contender, 3)
		for i := range all {
			all[i] = w.join(Holder{Owner: fmt.Sprint("owner-", i)})
		}
		p.together(len(all), func(i int) {
			terms := 2
			err := session.Run(p.ctx, all[i], func(context.Context, lease.Token) error {
				if n := running.Add(1); n != 1 {
					p.Errorf("%d functions run at once", n)
				}
				if !all[i].CheckAlive() {
					p.Errorf("%s: the function runs, and CheckAlive is false", all[i].who)
				}
				p.Sleep(p.Unit)
				running.Add(-1)
				return nil
			}, &session.RunOptions{Logger: silent.Logger, AcquireInterval: p.Unit, Again: func(error) bool { terms--; return terms > 0 }})
			if err != nil {
				p.Errorf("%s: Run: %v", all[i].who, err)
			}
		})
	}},
	{"N1/a-loss-ends-the-function", "the context of a function ends with the loss as its cause", canLose, func(p *probe) {
		a := p.world().join(Holder{Owner: "a"})
		lost := (*lease.LostError)(nil)
		began := time.Now()
		err := session.Run(p.ctx, a, func(ctx context.Context, _ lease.Token) error {
			a.lose()
			select {
			case <-ctx.Done():
			case <-time.After(p.D + p.eventTimeout()):
				p.Errorf("the lease is lost, and the context has not ended")
			}
			a.mend()
			return context.Cause(ctx)
		}, silent)
		if !errors.As(err, &lost) {
			p.Errorf("Run returned %v after %v", err, time.Since(began))
		}
		a.dead("after the run")
	}},
	{"N2/renewed-until-the-function-returns", "the lease is renewed until the function has returned, though its context ended before, and then released", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		ctx, cancel := context.WithCancel(p.ctx)
		_ = session.Run(ctx, a, func(context.Context, lease.Token) error {
			cancel()
			a.aliveFor(2*p.D, "while the function runs on")
			b.requireDenied("under which a function runs")
			return nil
		}, silent)
		a.dead("after the run")
		b.acquire()
	}},
	{"N3/a-panic-leaves-no-lease", "the lease of a function that panicked is free at once", 0, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		func() {
			defer func() { _ = recover() }()
			_ = session.Run(p.ctx, a, func(context.Context, lease.Token) error { panic("a function of the suite panics") }, silent)
		}()
		a.dead("after a panic")
		b.acquire()
		a.lostSoFar(0)
	}},
	{"N4/a-crowd-takes-turns", "each of many waiting holders gets the lease, one after the other", hasWait, func(p *probe) {
		w := p.world()
		first := w.join(Holder{Owner: "first"})
		first.acquire()
		crowd := make([]*contender, 5)
		turns := make(chan error, len(crowd))
		for i := range crowd {
			crowd[i] = w.join(Holder{Owner: fmt.Sprint("owner-", i)})
			go func() { turns <- errors.Join(crowd[i].waitUntilHeld(), crowd[i].release()) }()
		}
		p.pass(p.D)
		p.need(first.release(), "release")
		for n := range crowd {
			select {
			case err := <-turns:
				p.need(err, "a turn")
			case <-time.After(2*p.D + p.eventTimeout()):
				p.Fatalf("%d of %d had their turn, and then no other", n, len(crowd))
			}
		}
	}},
}

// silent contains options of session.Run that disable logging.
var silent = &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}
