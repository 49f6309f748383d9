package leasetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

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
		p.w.Fatalf("%s: OnLost was told %d times, and must be %d times: %v", p.who, len(errs), n, errs)
	}
	if n == 0 {
		return nil
	}
	return errs[n-1]
}

// isLost brings about a loss, and requires that it is told as the n-th.
func (p *contender) isLost(n int) {
	p.w.Helper()
	p.lose()
	p.w.pass(p.w.D + p.w.Slack)
	p.lostTimes(n)
}

// lostError requires that a handler was told a *lease.LostError with one of the reasons.
func (p *contender) lostError(err error, tok lease.Token, reasons ...lease.Code) {
	p.w.Helper()
	lost := (*lease.LostError)(nil)
	if !errors.As(err, &lost) {
		p.w.Errorf("%s: OnLost was told %T (%v), and must be told a *lease.LostError", p.who, err, err)
		return
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
