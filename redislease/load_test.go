package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease/internal/redisserver"
	"github.com/fencedlease/lease/session"
)

// A process holds 10,000 leases of 10 s through one Store, at a server that syncs every write to its disk.
// It loses none of them. With -short, it holds 500.
func TestThousandLeases(t *testing.T) {
	const duration, workers = 10 * time.Second, 256
	leases, held := 10_000, 25*time.Second
	if testing.Short() {
		leases, held = 500, 12*time.Second
	}
	s := store(t, client(t, ownServer(t, redisserver.Durable...).Addr()), nil)
	var lost atomic.Int64
	each := func(f func(l *session.Session) error, all []*session.Session) time.Duration {
		began := time.Now()
		var next atomic.Int64
		var working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for i := next.Add(1); i <= int64(len(all)); i = next.Add(1) {
					if err := f(all[i-1]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		working.Wait()
		return time.Since(began).Round(time.Millisecond)
	}
	all := make([]*session.Session, leases)
	for i := range all {
		l, err := s.Lease(fmt.Sprint("x", i), &session.Options{Duration: duration, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		l.OnLost(func(err error) {
			lost.Add(1)
			t.Error(err)
		})
		all[i] = l
	}
	acquired := each(func(l *session.Session) error {
		ok, err := l.Acquire(t.Context())
		if err == nil && !ok {
			err = errors.New("another holder")
		}
		return err
	}, all)
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
	for _, l := range all {
		if !l.CheckAlive() {
			t.Error("a lease is not held")
		}
	}
	released := each(func(l *session.Session) error { return l.Close(context.Background()) }, all)
	if listed != leases {
		t.Errorf("%d are listed", listed)
	}
	t.Logf("%d leases of %v: acquired in %v, held for %v, released in %v, %d lost", leases, duration, acquired, held, released, lost.Load())
}
