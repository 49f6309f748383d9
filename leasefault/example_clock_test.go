package leasefault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// The store and the holder use a clock that only the test moves.
func ExampleClock() {
	clock := leasefault.NewClock()
	clock.Rate(0) // from now on, only Step moves the clock
	store := memory.New(&memory.Options{Clock: clock})
	l, err := store.Lease("jobs/nightly", &session.Options{Clock: clock, Duration: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	lost := make(chan error, 1)
	l.OnLost(func(err error) { lost <- err })

	fmt.Println(l.Acquire(context.Background()))
	clock.Step(31 * time.Second) // for example, the process was suspended for 31 s
	fmt.Println(l.CheckAlive())
	fmt.Println("expired:", errors.Is(<-lost, lease.ErrExpired))
	// Output:
	// true <nil>
	// false
	// expired: true
}

// A test that moves a Clock waits for the goroutines of the Session after each step.
func TestWaitAfterEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := leasefault.NewClockAt(time.Now(), 0) // only Step moves it
		l, err := memory.New(&memory.Options{Clock: clock}).Lease("indexer/leader", &session.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		if ok, err := l.Acquire(t.Context()); !ok {
			t.Fatal("not acquired: ", err)
		}
		for range 10 {
			clock.Step(10 * time.Second)
			synctest.Wait() // until the Session has renewed the lease
		}
		if !l.CheckAlive() {
			t.Error("the lease of 30 s was not renewed for 100 s")
		}
	})
}
