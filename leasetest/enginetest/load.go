package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
)

// A Load is a test that holds many leases at the same time in one process.
type Load struct {
	Leases   int           // the number of leases, which must be positive
	Hold     time.Duration // how long the leases are held
	Duration time.Duration // the duration of each lease. Default: 10 s
	Refusals bool          // accept that an acquire is refused. Otherwise an acquire waits until it is granted
	Held     func()        // called while the leases are held. Default: none
}

// Run acquires the leases through one store, holds them, and releases them. It fails if a lease is lost.
func (l Load) Run(t *testing.T, s interface {
	lease.Lister
	Lease(name string, o *session.Options) (*session.Session, error)
}) {
	t.Helper()
	const workers = 64
	var held, refused, lost, renewals, least atomic.Int64
	if l.Duration == 0 {
		l.Duration = 10 * time.Second
	}
	least.Store(int64(l.Duration))
	o := &session.Options{Duration: l.Duration, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{
		Ended: func(i session.EndInfo) {
			if i.Reason != lease.ErrReleased {
				lost.Add(1)
			}
		},
		Renew: func(i session.RenewInfo) {
			renewals.Add(1)
			for old := least.Load(); int64(i.Left) < old && !least.CompareAndSwap(old, int64(i.Left)); old = least.Load() {
			}
		},
	}}
	all := make([]*session.Session, l.Leases)
	for i := range all {
		var err error
		if all[i], err = s.Lease(fmt.Sprint("many/", i), o); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	var refusal atomic.Value
	shorthand.Together(workers, l.Leases, func(i int) {
		var err error
		if l.Refusals {
			_, err = all[i].Acquire(t.Context())
		} else {
			_, err = session.AcquireWait(t.Context(), all[i], nil)
		}
		switch {
		case err == nil:
			held.Add(1)
		case l.Refusals:
			refused.Add(1)
			refusal.Store(err.Error())
		default:
			t.Errorf("lease %d: %v", i, err)
		}
	})
	acquired, before := time.Since(began), renewals.Load()
	time.Sleep(l.Hold) // in real time, because a server cannot run in a synctest bubble
	rate, alive, listed := float64(renewals.Load()-before)/l.Hold.Seconds(), int64(0), int64(0)
	for _, l := range all {
		if l.CheckAlive() {
			alive++
		}
	}
	if l.Held != nil {
		l.Held()
	}
	for e, err := range s.List(t.Context(), "many/") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Record.State == lease.Leased {
			listed++
		}
	}
	t.Logf("%d leases of %v acquired in %v, %d refused (%v); held for %v at %.0f renewals/s, %d lost; the least that was left at a renewal: %v",
		held.Load(), l.Duration, acquired.Round(time.Millisecond), refused.Load(), refusal.Load(), l.Hold, rate, lost.Load(), time.Duration(least.Load()).Round(time.Millisecond))
	if n := held.Load(); lost.Load() > 0 || n == 0 || alive != n || listed < n {
		t.Errorf("of %d leases, %d are held and %d listed, and %d were lost", n, alive, listed, lost.Load())
	}
	shorthand.Together(workers, l.Leases, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := all[i].Close(ctx); err != nil && !l.Refusals {
			t.Error(err)
		}
	})
}
