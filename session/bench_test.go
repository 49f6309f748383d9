package session_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// free is an authority that grants every request and costs nothing.
type free struct{}

func (free) Do(_ context.Context, _ string, req lease.Request) (lease.Result, error) {
	id := req.Proposed
	if req.Action == lease.ActionRenew {
		id = req.ID
	}
	return lease.Result{Record: lease.Record{State: lease.Leased, ID: id, Duration: lease.Infinite, Epoch: 1}, Now: time.Unix(1, 0), MinRemaining: lease.Infinite}, nil
}

func acquired(tb testing.TB, a lease.Authority, o *session.Options) *session.Session {
	s, err := session.New(a, name, o)
	if err != nil {
		tb.Fatal(err)
	}
	if ok, err := s.Acquire(context.Background()); !ok {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// CheckAlive does no I/O, takes no lock and allocates nothing. SPEC H9.
func TestCheckAliveAllocates(t *testing.T) {
	s := acquired(t, free{}, nil)
	if n := testing.AllocsPerRun(1000, func() { s.CheckAlive() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkRenewal counts the allocations of one renewal, without those of an authority. Its time is
// mostly the RenewInterval, which cannot be shorter.
func BenchmarkRenewal(b *testing.B) {
	renewed, done := make(chan struct{}), make(chan struct{})
	acquired(b, free{}, &session.Options{
		Duration: time.Minute, RenewInterval: time.Millisecond,
		Trace: &session.Trace{Renew: func(session.RenewInfo) {
			select {
			case renewed <- struct{}{}:
			case <-done:
			}
		}},
	})
	defer close(done)
	b.ReportAllocs()
	for b.Loop() {
		<-renewed
	}
}

// footprint holds n leases. It returns the bytes that each Session keeps, without the bytes of its
// authority and its name. It also returns the number of goroutines that all n Sessions have while
// nothing is due.
func footprint(tb testing.TB, n int) (bytes, goroutines float64) {
	names := make([]string, n)
	for i := range names {
		names[i] = "lease-" + strconv.Itoa(i)
	}
	sessions := make([]*session.Session, n)
	o := &session.Options{Duration: time.Hour}
	before, running := heap(), runtime.NumGoroutine()
	for i := range sessions {
		s, err := session.New(free{}, names[i], o)
		if err != nil {
			tb.Fatal(err)
		}
		if ok, err := s.Acquire(context.Background()); !ok {
			tb.Fatal(err)
		}
		sessions[i] = s
	}
	// Some of the goroutines that are no longer needed may not have ended yet.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > running && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	bytes = float64(heap()-before) / float64(n)
	goroutines = float64(runtime.NumGoroutine() - running)
	for _, s := range sessions {
		_ = s.Close(context.Background())
	}
	return bytes, goroutines
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// A Session that holds a lease and renews it has no goroutine while it waits.
func TestFootprint(t *testing.T) {
	const n = 5_000
	bytes, goroutines := footprint(t, n)
	if goroutines > 0 {
		t.Errorf("%v goroutines for %d sessions", goroutines, n)
	}
	t.Logf("%.0f bytes a session", bytes)
}
