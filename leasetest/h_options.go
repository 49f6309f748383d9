package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// waitRules check Wait and invalid options.
var waitRules = []rule{
	{"H21/wait", "wait returns at once if the lease is free, with the context's error if that ends first, and in time when the holder releases", hasWait, func(p *probe) {
		w := p.world()
		a, b := w.join(Holder{Owner: "a"}), w.join(Holder{Owner: "b"})
		waiter := b.waiter()
		p.need(waiter.Wait(p.ctx), "waiting for what is free")
		a.acquire()
		ctx, cancel := context.WithTimeout(p.ctx, p.D/2)
		defer cancel()
		if err := waiter.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("the context ended, and the error is %v", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- waiter.Wait(p.ctx) }()
		p.pass(p.D / 10)
		p.need(a.release(), "release")
		select {
		case err := <-waited:
			p.need(err, "waiting for what was released")
		case <-time.After(p.D + p.eventTimeout()):
			p.Fatalf("the holder released, and wait does not return")
		}
		b.acquire()
	}},
	{"H21/wait-ends-though-signals-are-lost", "a holder that waits gets the lease even if the watch signals nothing, is lost, or cannot begin, and it does not send requests without a pause", CanUseAuthority | hasWait, func(p *probe) {
		for i, fault := range []leasefault.WatchFault{leasefault.LoseSignals(p.rand.Uint64(), 1), leasefault.CloseWatch(p.D / 20), leasefault.FailWatch} {
			w := p.world()
			w.name = fmt.Sprint(p.name, i)
			a := w.join(Holder{Owner: "a"})
			w.direct = leasefault.Lossy(w.direct, fault)
			b := w.join(Holder{Owner: "b"})
			a.acquire()
			held := make(chan error, 1)
			go func() { held <- b.waitUntilHeld() }()
			p.pass(2 * p.D)
			if n := len(b.requests.sentOf(leasefault.Any)); n > 100 {
				p.Errorf("it asked %d times in two durations", n)
			}
			p.need(a.release(), "release")
			select {
			case err := <-held:
				p.need(err, "waiting")
			case <-time.After(p.D + p.eventTimeout()):
				p.Fatalf("the holder released, and the one that waits has not got it")
			}
			b.alive("after it waited")
			p.need(b.release(), "release")
		}
	}},
	{"H22/bad-holders-are-refused", "what is out of range, or leaves no time to renew, is refused when the lease is made: the constructor fails its test, and the message tells the value", 0, func(p *probe) {
		type bad struct {
			what   string
			holder Holder
			value  string // must be in the message
		}
		all := []bad{
			{"a duration below zero", Holder{Duration: -p.D}, (-p.D).String()},
			{"a duration that leaves no time to renew", Holder{Duration: 1}, "1ns"},
			{"no name", Holder{}, `""`},
		}
		for _, h := range badNames[1:] {
			all = append(all, bad{"a name that is " + h.what, Holder{Name: h.name}, ""}, bad{"an owner that is " + h.what, Holder{Owner: h.name}, ""})
		}
		w := p.world()
		var wrong []string
		for _, b := range all {
			h := b.holder
			if h.Authority = w.direct; h.Duration == 0 {
				h.Duration = p.D
			}
			if h.Name == "" && b.what != "no name" {
				h.Name = p.name
			}
			r := &recorder{TB: p.TB}
			r.run(func() { p.suite.newLease(r, h) })
			if said := strings.Join(r.messages, "\n"); said == "" {
				wrong = append(wrong, "a lease with "+b.what+" was made")
			} else if !strings.Contains(said, b.value) {
				wrong = append(wrong, fmt.Sprintf("a lease with %s was refused without a word of %s: %.200s", b.what, b.value, said))
			}
		}
		if len(wrong) > 0 {
			p.Errorf("%s", strings.Join(wrong, "\n"))
		}
	}},
}

func (p *contender) waiter() lease.Waiter {
	p.w.Helper()
	return p.Lease.(lease.Waiter)
}

// waitUntilHeld calls Wait and Acquire in turn until the lease is held.
func (p *contender) waitUntilHeld() error {
	for {
		if err := p.waiter().Wait(p.w.ctx); err != nil {
			return err
		}
		if _, ok, err := p.tryAcquire(p.w.ctx); ok || p.w.ctx.Err() != nil {
			return err
		}
	}
}
