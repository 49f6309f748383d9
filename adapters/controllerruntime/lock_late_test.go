package controllerruntime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/controllerruntime"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// A release with an unknown outcome that arrives late ends no lease that its Lock has acquired since.
func TestLateReleaseEndsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(nil).Authority()
		late := leasefault.Script(a, leasefault.Nth(1, lease.ActionRelease, leasefault.Detach(t, leasefault.DelayRequest(5*time.Second))))
		lock, err := controllerruntime.NewLock(late, name, "first", nil)
		if err != nil {
			t.Fatal(err)
		}
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}
		if err := lock.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err == nil {
			t.Fatal("the release was answered")
		}
		if err := lock.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if r := inspect(t, a); !r.State.Locked() {
			t.Errorf("the elector leads, and its lease is %v", r)
		}
	})
}
