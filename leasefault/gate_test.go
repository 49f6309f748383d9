package leasefault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// The release overtakes the renewal that was sent before it.
func TestGateReorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := new(leasefault.Gate)
		auth := leasefault.Script(lease.NewAuthority(memory.New(nil)),
			leasefault.Nth(1, lease.ActionRenew, gate.HoldRequest), leasefault.Nth(1, lease.ActionRelease, leasefault.After(gate.Open)))
		if _, err := auth.Do(t.Context(), "job", acquire(idA)); err != nil {
			t.Fatal(err)
		}
		renewed := make(chan error, 1)
		go func() {
			_, err := auth.Do(t.Context(), "job", lease.Request{Action: lease.ActionRenew, ID: idA})
			renewed <- err
		}()
		<-gate.Reached()
		if _, err := auth.Do(t.Context(), "job", release(idA)); err != nil {
			t.Errorf("release: %v", err)
		}
		if err := <-renewed; !errors.Is(err, lease.ErrIDMismatch) {
			t.Errorf("the renewal came second, and got %v", err)
		}
		gate.Open() // a second call of Open does no harm
	})
}

func TestGateHoldsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := new(leasefault.Gate)
		truth := lease.NewAuthority(memory.New(nil))
		auth := leasefault.Script(truth, leasefault.Nth(1, lease.ActionAcquire, gate.HoldAnswer), leasefault.Nth(1, lease.ActionRead, leasefault.Before(gate.Open)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := auth.Do(ctx, "job", acquire(idA)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the gate is closed, and the answer is %v", err)
		}
		if n := epoch(t, truth); n != 1 {
			t.Errorf("%d grants; the request must have been carried out", n)
		}
		if _, err := lease.Inspect(t.Context(), auth, "job"); err != nil {
			t.Error(err)
		}
	})
}

// Before can break the lease before a chosen renewal, and After cancel the caller after a chosen acquire.
func TestBeforeAndAfter(t *testing.T) {
	truth := lease.NewAuthority(memory.New(nil))
	ctx, cancel := context.WithCancel(t.Context())
	auth := leasefault.Script(truth,
		leasefault.Nth(1, lease.ActionRenew, leasefault.Before(func() {
			if _, err := lease.Break(t.Context(), truth, "job", lease.Grace(0)); err != nil {
				t.Error(err)
			}
		})),
		leasefault.Nth(2, lease.ActionAcquire, leasefault.After(cancel)))
	if _, err := auth.Do(ctx, "job", acquire(idA)); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Do(ctx, "job", lease.Request{Action: lease.ActionRenew, ID: idA}); !errors.Is(err, lease.ErrBroken) {
		t.Errorf("the lease was broken before the renewal: %v", err)
	}
	if _, err := auth.Do(ctx, "job", acquire(idB)); err != nil || ctx.Err() == nil {
		t.Errorf("the acquire came before the end of the context: %v, %v", err, ctx.Err())
	}
}
