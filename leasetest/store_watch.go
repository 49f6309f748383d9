package leasetest

import (
	"context"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// A watcher is a watch that restarts whenever it is lost.
type watcher struct {
	p        *tester
	ctx      context.Context
	watched  any
	name     string
	signals  <-chan struct{}
	received int // the number of expected signals that arrived
}

func (p *tester) beginWatch(ctx context.Context, watched any, name string) *watcher {
	p.Helper()
	return &watcher{p: p, ctx: ctx, watched: watched, name: name, signals: p.watch(ctx, watched, name)}
}

// A rule calls the method ready before it makes a change. The method receives all signals of earlier changes,
// so that the next signal belongs to the next change.
func (l *watcher) ready() {
	l.p.Helper()
	for range 10 { // a watch may begin with a signal, or may be lost several times
		l.p.pass(0)
		select {
		case _, open := <-l.signals:
			if !open {
				l.again()
			}
		default:
			return
		}
	}
}

// signalsChange waits for the signal that must follow a change, and reports whether the signal came. If the
// watch is lost instead, signalsChange restarts it and returns true.
func (l *watcher) signalsChange() bool {
	l.p.Helper()
	select {
	case _, open := <-l.signals:
		if open {
			l.received++
		} else {
			l.again()
		}
		return true
	case <-time.After(l.p.eventTimeout()):
		return false
	}
}

func (l *watcher) again() {
	l.p.Helper()
	l.p.history.printf("the watch is lost, and starts again")
	l.signals = l.p.watch(l.ctx, l.watched, l.name)
}

// The method requireSignal requires that at least one expected signal has come. A store may sometimes close a
// watch instead of sending a signal. If it closes the watch at every change, the rule fails.
func (l *watcher) requireSignal() {
	l.p.Helper()
	if l.received == 0 {
		l.p.Errorf("the watch was lost at every change, and none was signalled")
	}
}

func (l *watcher) requireOpen() {
	l.p.Helper()
	l.p.pass(0)
	select {
	case _, open := <-l.signals:
		if !open {
			l.p.Errorf("the watch is closed")
		}
	default:
	}
}

// watchRules check the watches of a store.
var watchRules = []rule{
	{"S7/another-client's-change-signals", "a change by one client is signalled to the watch of another", hasAnother | hasWatch, func(p *tester) {
		s := p.store()
		both := s.clients()
		for i := range both {
			writes, reads := both[i], both[1-i]
			snap := writes.putLeased(s.name, 100*s.D)
			watch := reads.beginWatch(s.ctx, reads.bare, s.name)
			for range 3 {
				watch.ready()
				snap = writes.put(s.name, snap, writes.leased(snap, 100*s.D))
				if !watch.signalsChange() {
					s.Fatalf("another client's change was not signalled")
				}
			}
			watch.requireSignal()
		}
	}},
	{"S7/a-change-after-unread-ones-is-signalled", "a change that must be signalled is signalled though the changes before it are unread, and whatever follows it", hasWatch, func(p *tester) {
		s := p.store()
		s.eachState(func(name string, state recordState) {
			watch := s.beginWatch(s.ctx, s.bare, name)
			snap := s.load(name)
			for n := range 4 { // an even or an odd number of changes whose signals were not read
				watch.ready()
				for range n {
					snap = s.put(name, snap, state.record(s, snap))
				}
				snap = s.put(name, snap, s.leased(snap, 100*s.D))
				snap = s.put(name, snap, lease.Record{Epoch: snap.Record.Epoch})
				if n%2 == 1 { // a later change does not take the signal back
					snap = s.put(name, snap, s.leased(snap, 100*s.D))
				}
				if !watch.signalsChange() {
					s.Fatalf("a release was not signalled after %d unread changes to %s and a grant", n, state.what)
				}
			}
		})
	}},
	{"S7/what-must-be-signalled-is-in-every-state", "every change that unlocks, breaks or shortens a lock or gives it to another is signalled, from every state to every state", hasWatch, func(p *tester) {
		s := p.store()
		for _, locked := range states {
			s.eachState(func(name string, next recordState) {
				if !s.can(locked.needs) {
					return
				}
				for _, what := range []string{"another holder", "another owner", "the same holder and end", "the same holder and an earlier end"} {
					name := fmt.Sprint(name, "/", locked.what, "/", what)
					snap := s.putState(name, locked)
					was, after := snap.Record, next.record(s, snap)
					if what != "another holder" && !after.ID.IsZero() {
						after.ID, after.Owner, after.Epoch = was.ID, was.Owner, was.Epoch
						if what == "another owner" {
							after.Owner = "another"
						}
						if !was.Until.IsZero() && !after.Until.IsZero() {
							after.Until = was.Until
						}
						if what == "the same holder and an earlier end" && !after.Until.IsZero() {
							after.Until = after.Until.Add(-10 * s.D)
						}
					}
					if !mustSignal(was, after) {
						continue
					}
					watch := s.beginWatch(s.ctx, s.bare, name)
					watch.ready()
					s.put(name, snap, after)
					if !watch.signalsChange() {
						s.Errorf("the change from %s to %s with %s was not signalled", locked.what, next.what, what)
					}
				}
			})
		}
	}},
	{"S7/a-corrupt-record-silences-no-watch", "a watch signals the changes of its lease though the record of another lease was corrupted, or is closed; the watches of that lease end with their context", hasWatch | hasCorrupt, func(p *tester) {
		s := p.store()
		corrupt := s.name + "/corrupt"
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		unreadable := []<-chan struct{}{s.watch(ctx, s.bare, corrupt)}
		s.putLeased(corrupt, 100*s.D)
		snap := s.putLeased(s.name, 100*s.D)
		s.history.printf("the test corrupts the record of %q", corrupt)
		s.Options.Store.Corrupt(s.tester.TB, s.bare, corrupt)
		_, _ = s.Load(s.ctx, corrupt)
		if later, err := s.bare.(lease.Watcher).Watch(ctx, corrupt); err == nil {
			unreadable = append(unreadable, later)
		}
		for range 2 {
			watch.ready()
			snap = s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
			if !watch.signalsChange() {
				s.Fatalf("the release of another lease was not signalled, and the watch is not closed")
			}
			snap = s.put(s.name, snap, s.leased(snap, 100*s.D))
		}
		cancel()
		for _, signals := range unreadable {
			s.requireClosed(signals)
		}
	}},
	{"S7/an-unread-watch-holds-no-other-up", "a watch whose signal was not received yet holds no signal to the other watches of the name up", hasWatch, func(p *tester) {
		s := p.store()
		snap := s.putLeased(s.name, 100*s.D)
		var all []*watcher
		for range 4 {
			all = append(all, s.beginWatch(s.ctx, s.bare, s.name))
		}
		for unread := range all {
			for _, w := range all {
				w.ready()
			}
			for range 4 { // several rounds, because a store may signal the watch with the unread signal last by chance
				snap = s.put(s.name, snap, s.leased(snap, 100*s.D))
				for i, w := range all {
					if i != unread && !w.signalsChange() {
						s.Fatalf("watch %d was not signalled, and watch %d has a signal that was not received yet", i+1, unread+1)
					}
				}
			}
		}
		for _, w := range all {
			w.requireSignal()
		}
	}},
	{"S7/a-watch-keeps-signalling", "a watch signals the last of many changes like the first, and after days like after seconds, or is closed as lost", hasWatch, func(p *tester) {
		s := p.store()
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		for i := range 100 {
			if s.Bubble && i%10 == 0 {
				s.pass(24 * time.Hour)
			}
			snap := s.putLeased(s.name, 100*s.D)
			watch.ready()
			s.put(s.name, snap, s.leased(snap, 100*s.D))
			if !watch.signalsChange() {
				s.Fatalf("change %d was not signalled, and the watch is not closed", i+1)
			}
		}
	}},
	{"S7/a-watch-ends-alone", "the end of one watch does not end others of the same name", hasWatch, func(p *tester) {
		s := p.store()
		var watches []*watcher
		var cancels []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			watches, cancels = append(watches, s.beginWatch(ctx, s.bare, s.name)), append(cancels, cancel)
		}
		for _, order := range [][]int{{1, 0, 2}, {0, 2}} {
			for _, i := range order {
				watches[i].ready()
			}
			cancels[order[0]]()
			s.requireClosed(watches[order[0]].signals)
			for _, i := range order[1:] {
				watches[i].requireOpen()
			}
			snap := s.putLeased(s.name, 100*s.D)
			for _, i := range order[1:] {
				watches[i].ready()
			}
			s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
			for _, i := range order[1:] {
				if !watches[i].signalsChange() {
					s.Errorf("a watch was not signalled after another had ended; %d were left", len(order)-1)
				}
			}
		}
	}},
	{"S7/a-watch-outlives-its-record", "a watch of a name that is forgotten signals the next release, or is closed as lost", hasWatch | hasForget, func(p *tester) {
		s := p.store()
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		snap := s.putLeased(s.name, 100*s.D)
		s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
		s.forget()
		snap = s.putLeased(s.name, 100*s.D)
		watch.ready()
		s.put(s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
		if !watch.signalsChange() {
			s.Errorf("the release was not signalled, and the watch is not closed")
		}
	}},
	{"S7/a-watch-that-is-lost-is-closed", "if the connection of a watch breaks, the watch is closed, or signals every change as before", hasWatch | hasLoseWatches, func(p *tester) {
		s := p.store()
		watch := s.beginWatch(s.ctx, s.bare, s.name)
		snap := s.putLeased(s.name, 100*s.D)
		watch.ready()
		s.history.printf("the connections of all watches break")
		s.Options.Store.LoseWatches(s.tester.TB, s.bare)
		for n := 0; snap.Record.State != lease.Available && n < maxSpurious; n++ { // a request may be lost as well
			_, _ = s.Swap(s.ctx, s.name, snap, lease.Record{Epoch: snap.Record.Epoch})
			if now, err := s.Load(s.ctx, s.name); err == nil {
				snap = now
			}
		}
		if !watch.signalsChange() {
			s.Errorf("the release was not signalled, and the watch is not closed")
		}
	}},
	{"S7/watch-ends-with-its-context", "a watch whose context is done is closed", hasWatch, func(p *tester) {
		s := p.store()
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		signals := s.watch(ctx, s.bare, s.name)
		cancel()
		s.requireClosed(signals)
		// If ctx is already done when Watch is called, Watch must return an error or a closed channel.
		if signals, err := s.bare.(lease.Watcher).Watch(ctx, s.name); err == nil {
			s.requireClosed(signals)
		}
	}},
}

// The function mustSignal reports whether a store must signal a change of a record. The first parameter is
// the record before the change, and the second parameter is the record after it.
func mustSignal(was, is lease.Record) bool {
	switch {
	case !was.State.Locked():
		return false
	case !is.State.Locked(), is.ID != was.ID, is.Owner != was.Owner, is.State == lease.Breaking && was.State != lease.Breaking:
		return true
	}
	return !is.Until.IsZero() && (was.Until.IsZero() || is.Until.Before(was.Until))
}

// authorityWatchRules check the watches of an authority.
var authorityWatchRules = []rule{
	{"S7/change-signals", "every change that unlocks, breaks or gives a lock to another is signalled to a watch of the authority", hasWatch, func(p *tester) {
		a := p.authority()
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		watch := p.beginWatch(ctx, a.bare, p.name)
		id, other := p.id(), p.id()
		for _, c := range []struct {
			req  lease.Request
			must bool
		}{
			{acquire(id, p.D), false}, {acquire(id, p.D), false}, {lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}, true}, {release(other), true},
			{acquire(id, p.D), false}, {lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 2)}, true}, {lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, true},
			{lease.Request{Action: lease.ActionWrite}, false},
			{acquire(id, p.D), false}, {lease.Request{Action: lease.ActionBreak}, true}, {release(id), true},
			{acquire(id, p.D), false}, {acquire(id, lease.Infinite), false}, {lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p.D / 2)}, true}, {release(id), true},
		} {
			if c.req.Action == lease.ActionRelease && !p.can(CanChange) {
				c.req.ID = id
			}
			if p.lacksAbility(c.req) || c.req.Duration == lease.Infinite && !p.can(CanBeInfinite) {
				continue
			}
			watch.ready()
			a.grant(c.req)
			if c.must && !watch.signalsChange() {
				p.Fatalf("%s was not signalled", requestText(c.req))
			}
		}
		watch.requireSignal()
		watch.ready()
		cancel()
		p.requireClosed(watch.signals)
	}},
}

func (p *tester) requireClosed(signals <-chan struct{}) {
	p.Helper()
	deadline := time.After(p.eventTimeout())
	for {
		select {
		case _, open := <-signals:
			if !open {
				return
			}
		case <-deadline:
			p.Fatalf("the channel was not closed")
		}
	}
}

// eventTimeout returns how long the suite waits for an event that should happen at once.
func (p *tester) eventTimeout() time.Duration { return p.D + 10*p.Slack }

func (p *tester) watch(ctx context.Context, watched any, name string) <-chan struct{} {
	p.Helper()
	signals, err := watched.(lease.Watcher).Watch(ctx, name)
	p.need(err, "watch")
	if cap(signals) != 1 {
		p.Errorf("the channel of a watch has a capacity of %d, want 1", cap(signals))
	}
	return signals
}
