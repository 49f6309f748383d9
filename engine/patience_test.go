package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
)

// gated is an authority that sends each request to its server through a Gate, the renewals first.
type gated struct {
	g      *Gate
	server *model

	mu      sync.Mutex
	records map[string]lease.Record
}

func (a *gated) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	r := Request{}
	if req.Action == lease.ActionRenew {
		r = Request{Urgent: true, Name: name, Renewals: 1}
	}
	p, err := a.g.Enter(ctx, r)
	if err != nil {
		return lease.Result{}, err
	}
	err = a.server.do(ctx)
	p.Leave(err == nil)
	if err != nil {
		return lease.Result{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	next, err := lease.Step(a.records[name].At(now), req, now)
	if err == nil {
		a.records[name] = next
		a.g.Note(name, next)
	}
	return lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}, err
}

// Renewals that wait while a server is paused do not fail, and are not repeated: their time limit begins when they are
// sent. So the pause costs no lease, and only the requests that were under way have an error.
func TestRenewalsWaitWhileAServerIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases, duration = 1200, 15 * time.Second // four fifths of what the server does
		a := &gated{g: NewGate(8), server: &model{each: time.Second / 300}, records: map[string]lease.Record{}}
		var failed, lost, latest atomic.Int64
		o := &session.Options{Duration: duration, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{
			Renew: func(i session.RenewInfo) {
				if latest.Store(max(latest.Load(), int64(i.Took))); i.Err != nil {
					failed.Add(1)
				}
			},
			Ended: func(i session.EndInfo) {
				if !errors.Is(i.Reason, lease.ErrReleased) {
					lost.Add(1)
				}
			},
		}}
		all := make([]*session.Session, leases)
		shorthand.Together(64, leases, func(i int) {
			var err error
			if all[i], err = session.New(a, fmt.Sprint(i), o); err != nil {
				t.Error(err)
				return
			}
			if ok, err := all[i].Acquire(t.Context()); !ok {
				t.Error(err)
			}
		})
		time.Sleep(duration)
		before := failed.Load()
		a.server.set(a.server.each, duration/3)
		time.Sleep(2 * duration)
		if n := failed.Load() - before; n > 40 || lost.Load() > 0 {
			t.Errorf("%d renewals failed, want at most the 40 that were under way; %d leases were lost", n, lost.Load())
		}
		if took := time.Duration(latest.Load()); took < duration/6 || took > duration/2 {
			t.Errorf("the latest renewal took %v, but it waited for about %v before it was sent", took, duration/3)
		}
		var closing sync.WaitGroup
		for _, s := range all {
			closing.Go(func() {
				for s.Close(t.Context()) != nil {
				}
			})
		}
		closing.Wait()
	})
}

// A renewal that waits to be sent when the term ends is not sent any more, and Close does not wait for it.
func TestCloseWhileARenewalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &gated{g: NewGate(1), server: &model{each: time.Millisecond}, records: map[string]lease.Record{}}
		s, err := session.New(a, "x", &session.Options{Duration: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		blocking, err := a.g.Enter(t.Context(), Request{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute) // the renewal is due
		began := time.Now()
		if err := s.Close(t.Context()); !errors.Is(err, lease.ErrUnsent) {
			t.Errorf("a release that was not sent: %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Close took %v, and the RequestTimeout of its release is 5s", took)
		}
		before := a.records["x"].Until
		blocking.Leave(true)
		synctest.Wait()
		if after := a.records["x"].Until; !after.Equal(before) {
			t.Errorf("the lease was renewed after its term, until %v instead of %v", after, before)
		}
	})
}
