package session_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// unwatched is an authority without a watch.
type unwatched struct{ lease.Authority }

// Follow yields every change once, at the signal or within an Interval, and sends no more reads than
// there are changes and Intervals.
func TestFollow(t *testing.T) {
	for what, over := range map[string]func(*network) lease.Authority{
		"watch":          func(n *network) lease.Authority { return n },
		"no watch":       func(n *network) lease.Authority { return unwatched{n} },
		"a silent watch": func(n *network) lease.Authority { return noisy{n, make(chan struct{})} }, // SPEC S7
	} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h, a := n.open(t, nil), over(n)
			began := time.Now()
			at := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
			at(10*time.Second, func() { h.acquire(t) })
			at(15*time.Second, func() { n.keep(lease.ActionRenew, failRequest); n.keep(lease.ActionRelease, failRequest) })
			at(100*time.Second, func() { n.keep(lease.ActionRead, failRequest) })
			at(103*time.Second, func() { n.heal() })
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var states []lease.State
			var last lease.Record
			changes, failures := 0, 0
			for res, err := range session.Follow(ctx, a, name, nil) {
				if err != nil {
					if failures++; !errors.Is(err, errNet) {
						t.Error(err)
					}
					continue
				}
				if changes++; changes > 1 && res.Record == last {
					t.Errorf("%+v twice", last)
				}
				last = res.Record
				if len(states) == 0 || states[len(states)-1] != last.State {
					states = append(states, last.State)
					if late := time.Since(began) - 10*time.Second; last.State == lease.Leased && late > time.Second {
						t.Errorf("the grant is seen %v late", late)
					}
				}
			}
			if len(states) != 3 || states[0] != lease.Available || states[1] != lease.Leased || states[2] != lease.Expired {
				t.Errorf("%s: the states are %v", what, states)
			}
			if time.Since(began) != time.Hour {
				t.Errorf("ended after %v", time.Since(began))
			}
			if failures < 2 || failures > 4 {
				t.Errorf("%s: %d failures", what, failures)
			}
			if reads, most := n.count(lease.ActionRead), changes+int(time.Hour/time.Second)+1; reads > most {
				t.Errorf("%s: %d reads for %d changes", what, reads, changes)
			}
		})
	}
}

// A store that signals all the time, or loses each watch, costs one read in each Interval.
func TestFollowWithBadWatches(t *testing.T) {
	for what, closed := range map[string]bool{"spurious signals": false, "lost watches": true} {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			signals := make(chan struct{}, 1000)
			for range 1000 {
				signals <- struct{}{}
			}
			if closed {
				signals = make(chan struct{})
				close(signals)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, err := range session.Follow(ctx, noisy{n, signals}, name, nil) {
				if err != nil {
					t.Error(err)
				}
			}
			if reads := n.count(lease.ActionRead); reads < 20 || reads > 63 {
				t.Errorf("%s: %d reads in a minute", what, reads)
			}
		})
	}
}

// A noisy authority signals what a test wants. Without a channel, its watches never begin.
type noisy struct {
	lease.Authority
	signals chan struct{}
}

func (n noisy) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	if n.signals == nil {
		<-ctx.Done()
	}
	return n.signals, ctx.Err()
}

// The first state comes at once, even if the watch never begins.
func TestFollowWithoutAnswerToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for res, err := range session.Follow(t.Context(), noisy{overMemory(), nil}, name, nil) {
			if took := time.Since(began); err != nil || took > 0 {
				t.Errorf("%+v, %v after %v", res, err, took)
			}
			break
		}
	})
}

func TestFollowIsRefused(t *testing.T) {
	a, fast := overMemory(), &session.FollowOptions{Interval: 5}
	for want, seq := range map[string]iter.Seq2[lease.Result, error]{
		"Follow.a = nil: must be given": session.Follow(t.Context(), nil, name, nil),
		"FollowOptions.Interval = 5ns: must be at least 1ms; did you forget the unit?": session.Follow(t.Context(), a, name, fast),
		lease.CheckName("").Error(): session.Follow(t.Context(), a, "", nil),
	} {
		var got []string
		for _, err := range seq {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
