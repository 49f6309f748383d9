package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// The functions in contenders are the two ways to contend for a lease.
var contenders = map[string]func(context.Context, lease.Lease, *session.RunOptions) error{
	"Run": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		return session.Run(ctx, l, func(context.Context, lease.Token) error { panic("called") }, o)
	},
	"Acquire": func(ctx context.Context, l lease.Lease, o *session.RunOptions) error {
		_, err := session.AcquireWait(ctx, l, o)
		return err
	},
}

// If the outcome of an attempt is unknown when the context ends, the contender releases the lease in
// case the attempt was granted. SPEC N3, H3.
func TestContextEndsAfterAnUnknownTry(t *testing.T) {
	unknown := []struct {
		name  string
		fault fault
	}{{"lost answer", loseAnswer}, {"failed answer", failAnswer}, {"late request", late(time.Second)}}
	for how, contend := range contenders {
		for i, c := range unknown {
			t.Run(how+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := overMemory()
					h := n.open(t, &session.Options{Duration: lease.Infinite})
					if i == 1 { // also if Session.ID has returned the ID
						h.ID()
					}
					n.meet(lease.ActionAcquire, c.fault)
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					began := time.Now()
					if err := contend(ctx, h, &session.RunOptions{AcquireInterval: time.Hour}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					synctest.Wait()
					if r := n.record(t); r.State != lease.Available || h.CheckAlive() {
						t.Errorf("the record is %+v, alive: %v", r, h.CheckAlive())
					}
				})
			})
		}
	}
}

// One attempt has an unknown outcome, and an error of the next attempt shows that no attempt can
// ever be granted. The contender releases the lease, and returns the error of the release if the
// release fails. SPEC N3.
func TestHopelessTellsWhatItCouldNotRelease(t *testing.T) {
	for how, contend := range contenders {
		synctest.Test(t, func(t *testing.T) {
			n := overMemory()
			h := n.open(t, nil)
			n.meet(lease.ActionAcquire, failAnswer, refuse(lease.ErrDuration, lease.Result{}))
			n.meet(lease.ActionRelease, refuse(lease.ErrConflict, lease.Result{}))
			err := contend(t.Context(), h, nil)
			if !errors.Is(err, lease.ErrDuration) || !errors.Is(err, lease.ErrConflict) {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}
