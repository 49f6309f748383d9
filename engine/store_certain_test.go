package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// The answer to an earlier read or list was slow, and a renewal was committed in the meantime. The next
// read still guarantees no more time than the lease has left since the renewal. SPEC A5.
func TestSlowAnswersMakeNoTimeCertain(t *testing.T) {
	const duration = 15 * time.Second
	for what, c := range map[string]struct {
		known bool // whether the process has read the record before
		call  func(*engine.Store) error
	}{
		"a read": {true, func(s *engine.Store) error {
			_, err := s.Load(context.Background(), name)
			return err
		}},
		"a list": {false, func(s *engine.Store) (err error) {
			for _, err = range s.List(context.Background(), "") {
			}
			return err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				holder, other := newStore(t, e, engine.Options{}).Authority(), newStore(t, e, engine.Options{})
				do(t, holder, acquire(idA, duration), 0)
				if c.known {
					if _, err := other.Load(t.Context(), name); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				var slow atomic.Bool
				slow.Store(true)
				e.after = func() {
					if slow.Swap(false) { // only the next answer is slow
						time.Sleep(3 * time.Second)
					}
				}
				called := make(chan error)
				go func() { called <- c.call(other) }()
				time.Sleep(time.Second)
				renewed := time.Now()
				do(t, holder, renew(idA), 0)
				if err := <-called; err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				res := do(t, other.Authority(), lease.Request{Action: lease.ActionRead}, 0)
				if left := duration - time.Since(renewed); res.MinRemaining > left {
					t.Errorf("a read promises %v, and %v are left", res.MinRemaining, left)
				}
			})
		})
	}
}
