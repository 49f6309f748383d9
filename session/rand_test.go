package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// With seeded sources, two runs of a test do the same at the same times.
func TestSeededRuns(t *testing.T) {
	history := func() (events []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var mu sync.Mutex // hooks are called on several goroutines
			note := func() {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, time.Since(began))
			}
			l, err := session.New(leasefault.Script(memory.New(nil).Authority(), leasefault.From(9, lease.ActionRenew, leasefault.LoseRequest)),
				"indexer/leader", &session.Options{Rand: rand.NewChaCha8([32]byte{1}), Trace: &session.Trace{
					Acquire: func(session.AcquireInfo) { note() },
					Renew:   func(session.RenewInfo) { note() },
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
				<-ctx.Done()
				return nil
			}, &session.RunOptions{Again: session.AfterLoss})
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		return events
	}
	first := history()
	if second := history(); len(first) < 100 || !slices.Equal(first, second) {
		t.Errorf("two runs with the same seeds differ, or have fewer than 100 events:\n%v\n%v", first, second)
	}
}
