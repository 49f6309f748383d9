package leasefault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// There are a hundred changes, one each second. Each case checks how many signals the watcher gets, how
// late they are, and when its watch is lost.
func TestWatchFaults(t *testing.T) {
	const changes = 100
	lose, delay := leasefault.LoseSignals, leasefault.DelaySignals
	for _, c := range []struct {
		name        string
		faults      []leasefault.WatchFault // the first fault is the outermost
		least, most int                     // signals
		late        time.Duration
		closed      time.Duration // 0: not before the end
	}{
		{"none", nil, changes, changes, 0, 0},
		{"none is lost", []leasefault.WatchFault{lose(1, 0)}, changes, changes, 0, 0},
		{"some are lost", []leasefault.WatchFault{lose(1, 0.5)}, 35, 65, 0, 0},
		{"more are lost", []leasefault.WatchFault{lose(1, 0.5), lose(2, 0.5)}, 10, 40, 0, 0},
		{"all are lost", []leasefault.WatchFault{lose(1, 1)}, 0, 0, 0, 0},
		{"late", []leasefault.WatchFault{delay(time.Second / 4)}, changes, changes, time.Second / 4, 0},
		{"later", []leasefault.WatchFault{delay(time.Second / 4), delay(time.Second / 2)}, changes, changes, time.Second * 3 / 4, 0},
		{"the watch is lost", []leasefault.WatchFault{leasefault.CloseWatch(10500 * time.Millisecond)}, 10, 10, 0, 10500 * time.Millisecond},
		{"late, and lost", []leasefault.WatchFault{delay(time.Second / 4), leasefault.CloseWatch(10500 * time.Millisecond)}, 10, 10, time.Second / 4, 10500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(nil)
				auth, byStore := lease.NewAuthority(store), lease.Store(store)
				for i := range c.faults {
					f := c.faults[len(c.faults)-1-i]
					auth, byStore = leasefault.Lossy(auth, f), leasefault.LossyStore(byStore, f)
				}
				for what, w := range map[string]any{"authority": auth, "store": byStore} {
					ctx, cancel := context.WithCancel(t.Context())
					name := "job/" + what
					signals, err := w.(lease.Watcher).Watch(ctx, name)
					if err != nil {
						t.Fatal(err)
					}
					began, got, closed := time.Now(), 0, time.Duration(0)
					watched := make(chan struct{})
					go func() {
						defer close(watched)
						for range signals {
							got++
							if late := time.Since(began) % time.Second; late != c.late {
								t.Errorf("a signal %v after the change; want %v", late, c.late)
							}
						}
						closed = time.Since(began)
					}()
					for range changes {
						time.Sleep(time.Second)
						if _, err := auth.Do(t.Context(), name, acquire(idA)); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Second)
					end := time.Since(began)
					cancel()
					<-watched
					if c.closed != 0 {
						end = c.closed
					}
					if got < c.least || got > c.most || closed != end {
						t.Errorf("%s: %d signals, closed after %v; want %d to %d, %v", what, got, closed, c.least, c.most, end)
					}
				}
			})
		})
	}
}

func TestFailWatch(t *testing.T) {
	auth := leasefault.Lossy(lease.NewAuthority(memory.New(nil)), leasefault.FailWatch)
	if _, err := auth.(lease.Watcher).Watch(t.Context(), "job"); !errors.Is(err, leasefault.ErrInjected) {
		t.Error(err)
	}
	for what, f := range map[string]leasefault.WatchFault{
		"CloseWatch": leasefault.CloseWatch(time.Second), "LoseSignals": leasefault.LoseSignals(1, 0.5), "DelaySignals": leasefault.DelaySignals(time.Second),
	} {
		if _, err := leasefault.Lossy(auth, f).(lease.Watcher).Watch(t.Context(), "job"); !errors.Is(err, leasefault.ErrInjected) {
			t.Errorf("%s of a watch that does not begin: %v", what, err)
		}
	}
	if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
		t.Errorf("a request met the fault of a watch: %v", err)
	}
}
