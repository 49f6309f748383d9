package leasetest

import (
	"context"
	"time"
)

// A watcher is a watch that is begun again when it is lost.
type watcher struct {
	p         *probe
	ctx       context.Context
	watched   any
	name      string
	signals   <-chan struct{}
	lostTimes int // how many signals came when they were due
}

func (p *probe) beginWatch(ctx context.Context, watched any, name string) *watcher {
	p.Helper()
	return &watcher{p: p, ctx: ctx, watched: watched, name: name, signals: p.watch(ctx, watched, name)}
}

// ready takes the signals of earlier changes.
func (l *watcher) ready() {
	l.p.Helper()
	for range 10 { // a watch may begin with a signal, and be lost after each
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

// signalsChange waits for the signal of a change. A watch that is lost meanwhile is begun again.
func (l *watcher) signalsChange() bool {
	l.p.Helper()
	select {
	case _, open := <-l.signals:
		if open {
			l.lostTimes++
		} else {
			l.again()
		}
		return true
	case <-time.After(l.p.patience()):
		return false
	}
}

func (l *watcher) again() {
	l.p.Helper()
	l.p.history.printf("the watch is lost, and begun anew")
	l.signals = l.p.watch(l.ctx, l.watched, l.name)
}

// requireSignal requires that not every change was a loss of the watch.
func (l *watcher) requireSignal() {
	l.p.Helper()
	if l.lostTimes == 0 {
		l.p.Errorf("the watch was lost at every change, and none was signalled")
	}
}
