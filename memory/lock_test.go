package memory_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// A slowClock advances by a nanosecond at each reading, during which it lets other goroutines run.
type slowClock struct{ readings atomic.Int64 }

func (c *slowClock) Now() time.Time {
	now := time.Unix(0, c.readings.Add(1))
	for range 10 {
		runtime.Gosched()
	}
	return now
}

func (c *slowClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// SPEC A2, S4, S8: other requests run while a Store reads its clock. Only one of two acquires is granted. A
// Load shows a release that was answered before it, and never shows a grant with a time before the grant.
func TestRequestsDuringAReadingOfTheClock(t *testing.T) {
	for range 200 {
		s := memory.New(&memory.Options{Clock: new(slowClock)})
		a := s.Authority()
		var granted atomic.Int32
		var calls sync.WaitGroup
		results := make([]lease.Result, 2)
		for i := range results {
			calls.Go(func() {
				res, err := a.Do(t.Context(), "x", lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{byte(i + 1)}, Duration: time.Hour})
				if err == nil {
					granted.Add(1)
				} else if lease.CodeOf(err) != lease.ErrHeldByOther {
					t.Error(err)
				}
				results[i] = res
			})
		}
		calls.Go(func() {
			snap, err := s.Load(t.Context(), "x")
			if err != nil {
				t.Error(err)
			}
			if began := snap.Record.Until.Add(-time.Hour); snap.Record.State == lease.Leased && snap.Now.Before(began) {
				t.Errorf("a load at %v shows what was granted at %v", snap.Now, began)
			}
		})
		calls.Wait()
		if n := granted.Load(); n != 1 {
			t.Fatalf("%d of two acquires at once were granted: %+v", n, results)
		}
		id := load(t, s, "x").Record.ID
		if _, err := a.Do(t.Context(), "x", lease.Request{Action: lease.ActionRelease, ID: id}); err != nil {
			t.Fatal(err)
		}
		if r := load(t, s, "x").Record; r.State != lease.Available {
			t.Fatalf("after a release by the authority a load shows %v", r)
		}
	}
}
