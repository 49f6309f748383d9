package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/urgent"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// urgentOnly records the actions whose contexts are marked, and those whose contexts are not.
type urgentOnly struct {
	lease.Authority
	mu   sync.Mutex
	seen map[lease.Action]bool
}

func (u *urgentOnly) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	u.mu.Lock()
	u.seen[req.Action] = urgent.Is(ctx)
	u.mu.Unlock()
	return u.Authority.Do(ctx, name, req)
}

// Renewals are marked as urgent. An acquire and a release are not.
func TestOnlyRenewalsAreUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &urgentOnly{Authority: memory.New(nil).Authority(), seen: map[lease.Action]bool{}}
		s, err := session.New(u, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Acquire(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(time.Minute)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for action, want := range map[lease.Action]bool{lease.ActionAcquire: false, lease.ActionRenew: true, lease.ActionRelease: false} {
			if got, ok := u.seen[action]; !ok || got != want {
				t.Errorf("%v: urgent %v, sent %v", action, got, ok)
			}
		}
	})
}
