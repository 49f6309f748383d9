package session_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Close waits for a step that a timer has begun.
func TestCloseWaitsForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := overMemory()
		var over atomic.Bool
		began := make(chan struct{})
		h := n.open(t, &session.Options{Trace: &session.Trace{Lost: func(*lease.LostError) {
			close(began)
			time.Sleep(time.Second)
			over.Store(true)
		}}})
		h.acquire(t)
		n.keep(lease.ActionRenew, n.hang)
		<-began
		n.heal()
		synctest.Wait()
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !over.Load() {
			t.Error("Close returned while the timer runs")
		}
	})
}
