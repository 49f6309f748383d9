package etcdtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// One process holds 10,000 leases of 10 s at a server that syncs its disk, and loses none.
func TestTenThousandLeases(t *testing.T) {
	n, hold := 10_000, 30*time.Second
	if testing.Short() {
		n, hold = 200, 3*time.Second
	}
	members, err := newMembers(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	server := &child{member: members[0]}
	server.Fsync = true
	server.start(t)
	t.Cleanup(func() { server.Kill() })
	s := store(t, client(t, server.Client), nil)
	var lost, renewals atomic.Int64
	var least atomic.Int64
	least.Store(int64(time.Minute))
	o := &session.Options{Duration: 10 * time.Second, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{
		Lost: func(*lease.LostError) { lost.Add(1) },
		Renew: func(i session.RenewInfo) {
			renewals.Add(1)
			for old := least.Load(); int64(i.Left) < old && !least.CompareAndSwap(old, int64(i.Left)); old = least.Load() {
			}
		},
	}}
	sessions := make([]*session.Session, n)
	began := time.Now()
	each := func(f func(i int)) {
		var all sync.WaitGroup
		under := make(chan struct{}, 64)
		for i := range n {
			under <- struct{}{}
			all.Go(func() {
				defer func() { <-under }()
				f(i)
			})
		}
		all.Wait()
	}
	each(func(i int) {
		var err error
		if sessions[i], err = s.Lease(fmt.Sprint("many/", i), o); err != nil {
			t.Error(err)
		} else if ok, err := sessions[i].Acquire(t.Context()); !ok {
			t.Error(err)
		}
	})
	acquired := time.Since(began)
	before := renewals.Load()
	time.Sleep(hold) // a real engine
	rate := float64(renewals.Load()-before) / hold.Seconds()
	t.Logf("%d leases, acquired in %v; %.0f renewals/s; the least that was left of 10 s at a renewal: %v; %d lost",
		n, acquired.Round(time.Millisecond), rate, time.Duration(least.Load()).Round(time.Millisecond), lost.Load())
	if lost.Load() > 0 {
		t.Errorf("%d leases are lost", lost.Load())
	}
	each(func(i int) {
		if err := sessions[i].Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Another process breaks leases with a grace of 20 s, some seconds after their renewals. With a watch,
// the work has most of the grace, although the server is paused for a second.
func TestGraceUnderFaults(t *testing.T) {
	const duration, grace, pause = 30 * time.Second, 20 * time.Second, time.Second
	server := newChild(t)
	var mu sync.Mutex
	left := map[bool][]time.Duration{}
	var all sync.WaitGroup
	s, other := store(t, client(t, server.Client), nil), store(t, client(t, server.Client), nil).Authority()
	for i := range 16 {
		watch := i%2 == 0
		l, err := s.Lease(fmt.Sprint("grace/", i), &session.Options{Duration: duration, Watch: watch, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		if ok, err := l.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Second) // a real engine
			held, done := l.WhileHeld(t.Context())
			defer done()
			began := time.Now()
			if _, err := lease.Break(t.Context(), other, l.Name(), lease.Grace(grace)); err != nil {
				t.Error(err)
			}
			<-held.Done()
			mu.Lock()
			defer mu.Unlock()
			left[watch] = append(left[watch], time.Since(began))
		})
	}
	time.Sleep(7 * time.Second)
	server.pause(t, pause)
	all.Wait()
	const window = 5 * time.Second // the default of StopWindow
	for watch, times := range left {
		slices.Sort(times)
		t.Logf("of a grace of 20 s, with Watch %v, the work had from %v to %v", watch, times[0].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
		if least := grace - window - duration/15 - 2*pause; watch && times[0] < least {
			t.Errorf("the work had %v, want at least %v", times[0], least)
		}
		if most := times[len(times)-1]; most > grace-window+pause {
			t.Errorf("the work had %v, which is too long", most)
		}
	}
}
