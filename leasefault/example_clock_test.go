package leasefault_test

import (
	"context"
	"errors"
	"fmt"
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
