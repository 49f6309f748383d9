package leasetest

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

var watchRules = []rule{
	{"S7/change-signals", "a grant after the watch began is signalled", Watching, func(p *probe) {
		s := p.store()
		signals := s.watch(s.ctx, s.bare, s.name)
		snap := s.load(s.name)
		for i := range 5 {
			snap = s.put(s.name, snap, s.leased(snap, 100*s.D))
			if !s.signalled(signals) {
				s.Fatalf("grant %d was not signalled", i+1)
			}
		}
	}},
	{"S7/every-watch-is-signalled", "a grant is signalled to every watch of the name, read or not", Watching, func(p *probe) {
		s := p.store()
		snap := s.load(s.name)
		first, second := s.watch(s.ctx, s.bare, s.name), s.watch(s.ctx, s.bare, s.name)
		for range 3 { // more than a channel of capacity 1 takes
			snap = s.put(s.name, snap, s.leased(snap, 100*s.D))
		}
		if !s.signalled(first) || !s.signalled(second) {
			s.Errorf("a watch was not signalled")
		}
	}},
	{"S7/the-last-change-is-signalled", "after the signal that follows it, a grant can be loaded: none is lost between them", Watching, func(p *probe) {
		s := p.store()
		signals := s.watch(s.ctx, s.bare, s.name)
		const changes = 30
		began := s.load(s.name).Record.Epoch
		s.together(2, func(i int) {
			if i == 0 {
				for snap := s.load(s.name); snap.Record.Epoch < began+changes; {
					s.yield() // each signal is followed
					var err error
					if snap, err = s.swap(s.name, snap, s.leased(snap, 100*s.D)); err != nil {
						s.Errorf("swap by the only writer: %v", err)
						return
					}
				}
				return
			}
			for {
				if !s.signalled(signals) {
					s.Errorf("the signals ended before change %d was seen", changes)
					return
				}
				if snap, err := s.Load(s.ctx, s.name); err != nil || snap.Record.Epoch >= began+changes {
					return
				}
			}
		})
	}},
	{"S7/watch-ends-with-its-context", "a watch whose context is done is closed", Watching, func(p *probe) {
		s := p.store()
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		signals := s.watch(ctx, s.bare, s.name)
		cancel()
		deadline := time.After(s.patience())
		for {
			select {
			case _, open := <-signals:
				if !open {
					return
				}
			case <-deadline:
				s.Fatalf("the channel was not closed")
			}
		}
	}},
}

// patience is how long the suite waits for what is due at once.
func (p *probe) patience() time.Duration { return p.D + 10*p.Slack }

func (p *probe) watch(ctx context.Context, watched any, name string) <-chan struct{} {
	p.Helper()
	w, ok := watched.(lease.Watcher)
	if !ok {
		p.Fatalf("it has no method Watch; it should lack Watching")
	}
	signals, err := w.Watch(ctx, name)
	p.need(err, "watch")
	return signals
}

// signalled waits for a signal.
func (p *probe) signalled(signals <-chan struct{}) bool {
	select {
	case _, open := <-signals:
		return open
	case <-time.After(p.patience()):
		return false
	}
}
