package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

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
