package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// A said notes what is done. As an authority, it grants everything.
type said func(what string)

func (say said) answer(o outcome) {
	say([]string{opWait: "Wait returns", opRelease: "Release returns", opHandOver: "HandOver returns"}[o.op])
}

func (say said) Do(_ context.Context, _ string, req lease.Request) (lease.Result, error) {
	say(req.Action.String())
	return lease.Result{Record: lease.Record{State: lease.Leased, ID: req.Proposed, Duration: lease.Infinite, Epoch: 1}, Now: time.Now(), MinRemaining: lease.Infinite}, nil
}

// The effects of a step are carried out in the order that type ending describes. Between two of them, the
// test lets all other goroutines run, so the answer to a release can come before the hook.
func TestOrderOfEffects(t *testing.T) {
	for want, input := range map[string]input{
		"context canceled; release; Release returns; Ended; Wait returns": (*machine).release,
		"context canceled; change; HandOver returns; Ended; Wait returns": func(m *machine, n uint64) { m.handOver(n, lease.ID{9}) },
		"context canceled; release; Ended":                                func(m *machine, _ uint64) { m.unbind(m.term.belief.id); m.stall(m.term.belief.token, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var log []string
			say := said(func(what string) { log = append(log, what) })
			s, _ := New(say, "x", &Options{Trace: &Trace{Ended: func(EndInfo) { synctest.Wait(); say("Ended") }}})
			_, _ = s.Acquire(t.Context())
			held, _ := s.WhileHeld(t.Context())
			s.begin(replyTo{t.Context(), say, 0}, (*machine).await)
			log = nil
			p := s.plan(func(m *machine, _ time.Time) {
				s.lastCall++
				s.calls = append(s.calls, replyTo{t.Context(), say, s.lastCall})
				input(m, s.lastCall)
			})
			p.acts = slices.Insert(p.acts, 0, synctest.Wait)
			p.do(func() { synctest.Wait(); say(fmt.Sprint(held.Err())) })
			p.perform()
			if synctest.Wait(); strings.Join(log, "; ") != want {
				t.Errorf("%q, want %q", strings.Join(log, "; "), want)
			}
			_ = s.Close(t.Context())
		})
	}
}
