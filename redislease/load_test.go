package redislease_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
)

// A process holds a thousand leases through one Store. It renews the leases for a while, then
// releases them, and loses none.
func TestThousandLeases(t *testing.T) {
	const leases, duration = 1000, 30 * time.Second
	held := 30 * time.Second
	if testing.Short() {
		held = 12 * time.Second
	}
	s := store(t, client(t, shared.Addr()), &redislease.Options{Prefix: prefix(t)})
	var lost sync.Map
	each := func(f func(i int) error) time.Duration {
		began := time.Now()
		errs := make(chan error, leases)
		for i := range leases {
			go func() { errs <- f(i) }()
		}
		for range leases {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		return time.Since(began)
	}
	all := make([]*session.Session, leases)
	for i := range all {
		l, err := s.Lease(fmt.Sprint("x", i), &session.Options{Duration: duration, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = l
		l.OnLost(func(err error) { lost.Store(i, err) })
	}
	acquired := each(func(i int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := session.AcquireWait(ctx, all[i], nil)
		return err
	})
	time.Sleep(held) // a real engine
	listed := 0
	for e, err := range s.List(t.Context(), "x") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Record.State == lease.Leased {
			listed++
		}
	}
	for i, l := range all {
		if confirmed, ok := l.LastConfirmed(); !ok || !l.CheckAlive() || time.Since(confirmed) > duration {
			t.Errorf("%d is held: %v, confirmed at %v", i, l.CheckAlive(), confirmed)
		}
	}
	released := each(func(i int) error { return all[i].Release(t.Context()) })
	for _, l := range all {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	losses := 0
	lost.Range(func(i, err any) bool {
		losses++
		t.Errorf("%v: %v", i, err)
		return true
	})
	if listed != leases {
		t.Errorf("%d are listed", listed)
	}
	t.Logf("%d leases of %v: acquired in %v, held for %v, released in %v, %d lost", leases, duration, acquired.Round(time.Millisecond), held, released.Round(time.Millisecond), losses)
}
