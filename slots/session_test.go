package slots_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/slots"
)

// TestSession checks that the work can ask the Session of its slot how long it has it, and give it up.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slots.New(memory.New(nil).Authority(), "jobs/", 2, &slots.Options{Session: &session.Options{Duration: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if slots.Session(t.Context()) != nil {
			t.Error("there is a Session outside Run")
		}
		err = s.Run(t.Context(), func(ctx context.Context, tok lease.Token) error {
			held := slots.Session(ctx)
			if held.Name() != "jobs/slots/0" || held.Token() != tok {
				t.Errorf("the Session has %q and %s, want jobs/slots/0 and %s", held.Name(), held.Token(), tok)
			}
			first, ok := held.Until()
			if left := time.Until(first); !ok || left <= 0 || left > 30*time.Second {
				t.Errorf("the slot is held for another %v, %v", left, ok)
			}
			time.Sleep(time.Minute)
			if later, ok := held.Until(); !ok || later.Sub(first) < 50*time.Second {
				t.Errorf("a minute later, the end has moved from %v to %v, %v", first, later, ok)
			}
			if err := held.Release(ctx); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("Run after a Release: %v", err)
		}
	})
}
