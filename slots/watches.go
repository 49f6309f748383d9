package slots

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/tasks"
)

// The watches of a waiter signal that a lease has changed. They stay open from one list of the leases to the
// next.
type watches struct {
	requests tasks.Count   // calls of Watch that have not returned
	names    []string      // of the leases that are watched; empty if there is no watch
	changed  chan struct{} // signals that a lease has changed
	lost     atomic.Bool   // whether a watch has ended by itself, or could not begin
	stop     context.CancelFunc
	all      sync.WaitGroup
}

// The method begin starts watches of the leases with the given names, and ends the watches of all other
// leases. If a watch was lost, the method starts all watches again. It does not wait for the authority.
func (ws *watches) begin(ctx context.Context, w lease.Watcher, o *Options, g *tasks.Group, names []string) {
	again := slices.Equal(ws.names, names)
	if again && !ws.lost.Load() {
		return
	}
	ws.end()
	ctx, ws.stop = context.WithCancel(ctx)
	ws.names = names
	ws.lost.Store(false)
	ws.all.Go(func() {
		for _, name := range names {
			signals, err := ask(ctx, o, g, &ws.requests, func(context.Context) (<-chan struct{}, error) {
				return w.Watch(ctx, name)
			})
			if err != nil {
				ws.lost.Store(true)
				return
			}
			ws.all.Go(func() { ws.forward(ctx, signals) })
		}
		if !again { // otherwise a watch that is lost again and again would cause many lists
			ws.signal() // a lease may have changed between the list and the watches
		}
	})
}

func (ws *watches) signal() {
	select {
	case ws.changed <- struct{}{}:
	default: // a signal is already pending
	}
}

func (ws *watches) forward(ctx context.Context, signals <-chan struct{}) {
	for {
		select {
		case _, open := <-signals:
			if !open {
				ws.lost.Store(true)
				return
			}
			ws.signal()
		case <-ctx.Done():
			return
		}
	}
}

// drain drops a pending signal. It is called before a list, because the list will show the change anyway.
func (ws *watches) drain() {
	select {
	case <-ws.changed:
	default:
	}
}

func (ws *watches) end() {
	if ws.names != nil {
		ws.stop()
		ws.all.Wait()
		ws.names = nil
	}
}
