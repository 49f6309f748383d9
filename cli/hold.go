package cli

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A tally counts the renewals and losses of many leases that are held at the same time.
type tally struct {
	mu      sync.Mutex
	held    int
	lost    int
	took    []time.Duration // of the renewals that were granted since the last call of renewals
	failed  int             // renewals that failed since the last call of renewals
	failure error           // the error of one of these failures
	refused error           // the last error of an acquire
}

// The method h.renewals returns what has happened since it was last called: how long each successful renewal
// took, how many renewals failed, and the error of the last failure.
func (h *tally) renewals() (took []time.Duration, failed int, failure error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	took, failed, failure = h.took, h.failed, h.failure
	h.took, h.failed, h.failure = nil, 0, nil
	return took, failed, failure
}

func (h *tally) renewed(r session.RenewInfo) {
	h.count(func() {
		if r.Err != nil {
			h.failed, h.failure = h.failed+1, r.Err
		} else {
			h.took = append(h.took, r.Took)
		}
	})
}

// The method b.sessions makes a Session for every i with first <= i < end, for the lease benchName(i). If
// renewInterval is 0, the Sessions use the default RenewInterval.
func (b *benchmark) sessions(h *tally, first, end int, renewInterval time.Duration) (all []*session.Session, err error) {
	o := &session.Options{Duration: b.duration, RenewInterval: renewInterval, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{Renew: h.renewed}}
	for i := first; i < end; i++ {
		l, err := b.storeOf(i).Lease(benchName(i), o)
		if err != nil {
			return all, err
		}
		l.OnLost(func(error) { h.count(func() { h.held--; h.lost++ }) })
		all = append(all, l)
	}
	return all, nil
}

func (h *tally) count(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// The method b.hold acquires as many leases as -leases says, holds them for two Durations, and prints a row
// of a table. A busy machine can grant nothing for a while, so b.hold tries again if the store refuses some
// of the leases. With a Duration of 30 s, for example, b.hold stops trying when the number of held leases has
// grown by less than 5 % within 90 s.
func (b *benchmark) hold() error {
	h := new(tally)
	sessions, err := b.sessions(h, 0, b.leases, 0)
	defer b.close(sessions)
	if err != nil {
		return b.benchFailed(err)
	}
	took, err := b.acquire(h, sessions)
	if err != nil || b.ended.Err() != nil {
		return err
	}
	h.renewals() // discard the renewals before the measurement
	began := time.Now()
	select {
	case <-time.After(2 * b.duration):
	case <-b.ended.Done():
		return nil
	}
	renewals, failed, _ := h.renewals()
	rate := float64(len(renewals)) / time.Since(began).Seconds()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	h.count(func() {
		fmt.Printf("| Leases of | Asked for | Held | Lost | Acquired within | Renewals a second | Failed | Median | 99%% | Memory |\n")
		fmt.Printf("|---|---|---|---|---|---|---|---|---|---|\n")
		fmt.Printf("| %v | %d | %d | %d | %v | %.0f | %d | %v | %v | %d MB |\n", b.duration, len(sessions), h.held, h.lost, took.Round(100*time.Millisecond),
			rate, failed, part(renewals, 50), part(renewals, 99), (memory.Sys-memory.HeapReleased)>>20)
		if h.refused != nil {
			fmt.Printf("\nThe last that was refused: %s.\n", oneLine(h.refused))
		}
	})
	fmt.Printf("\nAt the end, %s.\n", load())
	return nil
}

// acquire acquires the leases, and returns how long it took until the last one was acquired.
func (b *benchmark) acquire(h *tally, sessions []*session.Session) (took time.Duration, err error) {
	began := time.Now()
	last, mark, marked := began, 0, began // last is when a lease was last acquired, and mark how many leases were held at the time marked
	queue := make(chan *session.Session, len(sessions))
	for _, l := range sessions {
		queue <- l
	}
	ctx, cancel := context.WithCancel(b.ended)
	defer cancel()
	held := 0
	try := func(l *session.Session) bool {
		ok, failed := l.Acquire(ctx)
		h.count(func() {
			switch {
			case ok:
				h.held++
				held++
				last = time.Now()
			case ctx.Err() != nil:
			case failed == nil: // another process holds the lease
				err = lease.ErrHeldByOther
			default:
				h.refused = failed
			}
			if held == len(sessions) || err != nil {
				cancel()
			}
			if now := time.Now(); now.Sub(marked) > 3*b.duration {
				if held*20 <= mark*21 {
					cancel()
				}
				mark, marked = held, now
			}
		})
		if !ok {
			queue <- l
		}
		return ok
	}
	var workers sync.WaitGroup
	for range min(atATime, len(sessions)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				select {
				case l := <-queue:
					if !try(l) {
						select {
						case <-time.After(b.duration / 12):
						case <-ctx.Done():
						}
					}
				case <-ctx.Done():
				}
			}
		})
	}
	workers.Wait()
	if err == nil && held == 0 {
		err = h.refused
	}
	if err != nil {
		err = b.benchFailed(err)
	}
	return last.Sub(began), err
}
