package leasetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// If an answer or a timer is later than [Options.Slack], even a correct implementation can fail, for example
// because a lease ends while the machine is busy. Such a failure does not count, and the rule runs again,
// first beside only a few other rules, and later alone.

// A rule runs at most eight times. During the fourth run and all later runs, no other rule runs at the same
// time.
const maxRuns, aloneFrom = 8, 4

func (s *suite) checkInRealTime(t testing.TB, r rule) {
	rulePace.enter(s.options.Unit / 8)
	for n := 1; ; n++ {
		run := &recorder{TB: t}
		var p *tester
		run.run(func() {
			p = s.tester(run, r)
			if n > 1 {
				p.name = fmt.Sprintf("%s/%d", p.name, n)
			}
			p.guarded(func() { r.check(p) })()
		})
		rulePace.leave()
		delay, what := p.history.delays.longest()
		late := s.options.realTime && delay > s.options.Slack
		switch {
		case run.Failed() && late && n == maxRuns:
			s.mu.Lock()
			s.skipped = append(s.skipped, fmt.Sprintf("%s (in each of %d runs an answer or a timer was later than Options.Slack)", r.name, n))
			s.mu.Unlock()
			messages, _ := run.result()
			t.Skipf("%d runs of the rule failed and do not count, because in each an answer or a timer was later than Options.Slack, %v; in the last one, %s was late by %v, and the rule said:\n%s",
				n, s.options.Slack, what, delay, strings.Join(messages, "\n"))
		case run.Failed() && late:
			t.Logf("run %d of the rule failed and does not count, because %s was late by %v, and Options.Slack is %v", n, what, delay, s.options.Slack)
			beside := fewRules - 1
			if n+1 >= aloneFrom {
				beside = 0
			}
			rulePace.enterAgain(beside)
			continue
		}
		messages, skipped := run.result()
		for _, message := range messages {
			t.Error(message)
		}
		if skipped {
			t.SkipNow()
		}
		return
	}
}

// delays contains the longest delay of a run. It is safe for concurrent use.
type delays struct {
	mu   sync.Mutex
	most time.Duration
	what string // which answer or which pause was late
}

func (d *delays) add(what string, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delay > d.most {
		d.most, d.what = delay, what
	}
}

func (d *delays) longest() (time.Duration, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most, d.what
}

// answered adds the time since a request was sent. It is called when the answer arrives.
func (d *delays) answered(request string, sent time.Time) {
	d.add("the answer to a request, "+request+",", time.Since(sent))
}

// step is the longest single pause in sleep.
const step = 100 * time.Millisecond

// sleep calls pause until the time t has passed. Outside the tests of this package, pause is time.Sleep. A
// pause that takes too long counts as a delay. The pauses are short, because a stall of the machine that
// begins and ends within one pause cannot be noticed.
func (d *delays) sleep(t time.Duration, pause func(time.Duration)) {
	for end := time.Now().Add(t); time.Until(end) > 0; {
		began, p := time.Now(), min(step, time.Until(end))
		pause(p)
		d.add("a sleep", time.Since(began)-p)
	}
}

// The method authority returns a wrapper of the authority a. The wrapper measures how long each call takes.
func (d *delays) authority(a lease.Authority) lease.Authority {
	return wrap.Authority(timedAuthority{a, d}, a)
}

type timedAuthority struct {
	lease.Authority
	d *delays
}

func (a timedAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	sent := time.Now()
	defer func() { a.d.answered(req.Action.String(), sent) }()
	return a.Authority.Do(ctx, name, req)
}
