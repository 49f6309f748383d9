package leasetest

import (
	"context"
	"time"
)

// A watcher is a watch that starts again when it is lost.
type watcher struct {
	p        *probe
	ctx      context.Context
	watched  any
	name     string
	signals  <-chan struct{}
	received int // the number of expected signals that arrived
}

func (p *probe) beginWatch(ctx context.Context, watched any, name string) *watcher {
	p.Helper()
	return &watcher{p: p, ctx: ctx, watched: watched, name: name, signals: p.watch(ctx, watched, name)}
}

// ready receives the signals of earlier changes.
func (l *watcher) ready() {
	l.p.Helper()
	for range 10 { // a watch may start with a signal, and may be lost again and again
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

// signalsChange waits for the signal that follows a change, and reports whether it arrived. If the
// watch is lost, signalsChange starts the watch again and returns true.
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

// requireSignal requires that at least one expected signal arrived. If none arrived, the watch was
// lost at every change.
func (l *watcher) requireSignal() {
	l.p.Helper()
	if l.received == 0 {
		l.p.Errorf("the watch was lost at every change, and none was signalled")
	}
}
