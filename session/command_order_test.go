package session_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// While a release is due after a loss, the Session does not send an Acquire that waits for its
// turn, because an ID of the Session itself would make the authority refuse it. See the order of
// commands in machine.go. SPEC H7a.
func TestCleanUpGoesBeforeAnAcquireThatWaits(t *testing.T) {
	for _, waits := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			d := deferred(t, nil)
			d.n.meet(lease.ActionAcquire, slow(time.Second, time.Second))
			granted := make(chan bool, waits)
			go func() {
				if ok, err := d.Acquire(t.Context()); ok || err == nil {
					t.Errorf("the Acquire beside the release: %v, %v", ok, err)
				}
			}()
			synctest.Wait()
			for range waits { // these calls wait until the first Acquire is answered
				go func() {
					ok, err := d.Acquire(t.Context())
					if !ok || err != nil {
						t.Errorf("an Acquire that waited: %v, %v", ok, err)
					}
					granted <- ok
				}()
			}
			synctest.Wait()
			d.n.keep(lease.ActionRenew, nil)
			d.back() // the release is due from now on
			for range waits {
				<-granted
			}
			var order []lease.Action
			for _, r := range d.n.requests(lease.ActionAcquire, lease.ActionRelease) {
				order = append(order, r.Action)
			}
			if want := []lease.Action{lease.ActionAcquire, lease.ActionAcquire, lease.ActionRelease, lease.ActionAcquire}; !slices.Equal(order, want) {
				t.Errorf("sent %v, want %v", order, want)
			}
			d.alive(t, true)
		})
	}
}
