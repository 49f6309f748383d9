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

// The second acquire is executed, but its answer is lost, so the client does not know about it.
func ExampleScript() {
	ctx := context.Background()
	store := memory.New(nil).Authority()
	auth := leasefault.Script(store, leasefault.Nth(2, lease.ActionAcquire, leasefault.FailAnswer))

	for _, name := range []string{"jobs/first", "jobs/second"} {
		l, err := session.New(auth, name, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		ok, err := l.Acquire(ctx)
		fmt.Println(name, ok, errors.Is(err, leasefault.ErrInjected))
		if err := l.Close(ctx); err != nil { // Close releases a lease that Acquire may have acquired
			fmt.Println(err)
		}
	}
	left, err := lease.Inspect(ctx, store, "jobs/second")
	fmt.Println(left.Record.State, err)
	// Output:
	// jobs/first true false
	// jobs/second false true
	// available <nil>
}

// A third party breaks the lease just before the holder's first renewal.
func ExampleBefore() {
	ctx := context.Background()
	store := memory.New(nil).Authority()
	auth := leasefault.Script(store, leasefault.Nth(1, lease.ActionRenew, leasefault.Before(func() {
		_, _ = lease.Break(ctx, store, "jobs/nightly", lease.Grace(0))
	})))
	l, err := session.New(auth, "jobs/nightly", &session.Options{RenewInterval: 50 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close(ctx)
	lost := make(chan error, 1)
	l.OnLost(func(err error) { lost <- err })
	fmt.Println(l.Acquire(ctx))
	fmt.Println(errors.Is(<-lost, lease.ErrBroken), l.CheckAlive())
	// Output:
	// true <nil>
	// true false
}

// The watch signals nothing. The waiting holder tries again when the lease that it has seen ends.
func ExampleLossy() {
	ctx := context.Background()
	store := memory.New(nil).Authority()
	lossy := leasefault.Lossy(store, leasefault.LoseSignals(1, 1))
	shortLeases := &session.Options{Duration: 200 * time.Millisecond}
	first, err := session.New(store, "jobs/nightly", shortLeases)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := session.New(lossy, "jobs/nightly", shortLeases)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close(ctx)
	fmt.Println(first.Acquire(ctx))
	time.AfterFunc(20*time.Millisecond, func() { _ = first.Close(ctx) }) // the second session gets no signal
	tok, err := session.AcquireWait(ctx, second, nil)
	fmt.Println(tok.Validate(), err, second.CheckAlive())
	// Output:
	// true <nil>
	// <nil> <nil> true
}
