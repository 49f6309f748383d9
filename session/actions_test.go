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
	"github.com/fencedlease/lease/internal/holder"
)

// A said notes what is done. As an authority, it grants everything.
type said func(what string)

func (say said) answer(o holder.Outcome) {
	say([]string{holder.OpWait: "Wait returns", holder.OpRelease: "Release returns", holder.OpHandOver: "HandOver returns"}[o.Op])
}

func (say said) Do(_ context.Context, _ string, req lease.Request) (lease.Result, error) {
	say(req.Action.String())
	return lease.Result{Record: lease.Record{State: lease.Leased, ID: req.Proposed, Duration: lease.Infinite, Epoch: 1}, Now: time.Now(), MinRemaining: lease.Infinite}, nil
}

// The effects of a step are carried out in the order that type ending describes. Between two of them, the
// test lets all other goroutines run, so the answer to a release can come before the hook.
func TestOrderOfEffects(t *testing.T) {
	for want, input := range map[string]input{
		"context canceled; release; Release returns; Ended; Wait returns": (*holder.Machine).Release,
		"context canceled; change; HandOver returns; Ended; Wait returns": func(m *holder.Machine, n uint64) { m.HandOver(n, lease.ID{9}) },
		"context canceled; release; Ended":                                func(m *holder.Machine, _ uint64) { m.WorkEnds(m.Belief().ID); m.Stall(m.Belief().Token, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var log []string
			say := said(func(what string) { log = append(log, what) })
			s, _ := New(say, "x", &Options{Trace: &Trace{Ended: func(EndInfo) { synctest.Wait(); say("Ended") }}})
			_, _ = s.Acquire(t.Context())
			held, _ := s.WhileHeld(t.Context())
			s.begin(pendingCall{t.Context(), say, 0}, (*holder.Machine).Await)
			log = nil
			p := s.handle(func(m *holder.Machine, _ time.Time) {
				s.lastCall++
				s.calls = append(s.calls, pendingCall{t.Context(), say, s.lastCall})
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
