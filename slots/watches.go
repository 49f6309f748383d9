package slots

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/fencedlease/lease"
)

// The first waiter watches all slots. The watches go on from one list to the next.
type watches struct {
	n       int           // of the slots that are watched; 0 if there is no watch
	changed chan struct{} // signals that a slot has changed
	lost    atomic.Bool   // a watch has ended by itself, or has not begun
	stop    context.CancelFunc
	all     sync.WaitGroup
}

// begin watches n slots, unless it does so already. If a watch was lost, all begin again.
func (ws *watches) begin(ctx context.Context, w lease.Watcher, prefix string, n int) {
	if ws.n == n && !ws.lost.Load() {
		return
	}
	ws.end()
	ctx, ws.stop = context.WithCancel(ctx)
	ws.n = n
	ws.lost.Store(false)
	for i := range n {
		signals, err := w.Watch(ctx, slotName(prefix, i))
		if err != nil {
			ws.lost.Store(true)
			return
		}
		ws.all.Go(func() { ws.forward(ctx, signals) })
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
			select {
			case ws.changed <- struct{}{}:
			default: // a signal waits already
			}
		case <-ctx.Done():
			return
		}
	}
}

// drain drops a signal that came before the list that follows.
func (ws *watches) drain() {
	select {
	case <-ws.changed:
	default:
	}
}

func (ws *watches) end() {
	if ws.n > 0 {
		ws.stop()
		ws.all.Wait()
		ws.n = 0
	}
}
