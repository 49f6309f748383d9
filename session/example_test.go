package session_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// Two owners contend for one lease. Each grant has a newer token.
func Example() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	alice, _ := session.New(authority, "jobs/nightly", &session.Options{Owner: "alice"})
	bob, _ := session.New(authority, "jobs/nightly", &session.Options{Owner: "bob"})
	defer alice.Close(ctx)
	defer bob.Close(ctx)

	tok, ok, _ := alice.AcquireWithToken(ctx)
	fmt.Println("alice:", ok, tok)
	_, ok, _ = bob.AcquireWithToken(ctx)
	fmt.Println("bob:", ok)
	_ = alice.Release(ctx)
	tok, ok, _ = bob.AcquireWithToken(ctx)
	fmt.Println("bob:", ok, tok)
	fmt.Println("alive:", alice.CheckAlive(), bob.CheckAlive())
	// Output:
	// alice: true 00000000000000000001
	// bob: false
	// bob: true 00000000000000000002
	// alive: false true
}

// A holder is told once that its lease is lost, and why.
func ExampleSession_OnLost() {
	ctx := context.Background()
	now := clock.NewMock()
	authority := memory.New(&memory.Options{Clock: now}).Authority()
	s, _ := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	defer s.Close(ctx)
	lost := make(chan error)
	s.OnLost(func(err error) { lost <- err })

	_, _ = s.Acquire(ctx)
	now.Add(time.Second)
	fmt.Println("held:", s.CheckAlive())
	_, _ = lease.Break(ctx, authority, "jobs/nightly", lease.Grace(0)) // the lease ends at once
	now.Add(10 * time.Second)
	var reason *lease.LostError
	errors.As(<-lost, &reason)
	fmt.Println("lost:", reason.Reason.String(), s.CheckAlive())
	// Output:
	// held: true
	// lost: broken false
}

// An operator who breaks a lease can give the holder time to finish.
func ExampleSession_OnBreaking() {
	ctx := context.Background()
	now := clock.NewMock()
	authority := memory.New(&memory.Options{Clock: now}).Authority()
	holder, _ := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	next, _ := session.New(authority, "jobs/nightly", &session.Options{Clock: now})
	defer holder.Close(ctx)
	defer next.Close(ctx)
	breaking := make(chan time.Time)
	holder.OnBreaking(func(until time.Time) { breaking <- until })

	_, _ = holder.Acquire(ctx)
	left, _ := lease.Break(ctx, authority, "jobs/nightly", lease.Grace(20*time.Second))
	fmt.Println("locked for another", left)
	now.Add(10 * time.Second)
	fmt.Println("the holder has about", (<-breaking).Sub(now.Now()).Round(time.Second))
	fmt.Println("and still holds:", holder.CheckAlive())
	_ = holder.Release(ctx) // the holder has finished its work early
	ok, _ := next.Acquire(ctx)
	fmt.Println("next:", ok)
	// Output:
	// locked for another 20s
	// the holder has about 10s
	// and still holds: true
	// next: true
}

// A holder hands its lease over, so that no third holder can acquire it in between.
func ExampleSession_HandOver() {
	ctx := context.Background()
	authority := memory.New(nil).Authority()
	old, _ := session.New(authority, "jobs/nightly", nil)
	next, _ := session.New(authority, "jobs/nightly", nil)
	third, _ := session.New(authority, "jobs/nightly", nil)
	for _, s := range []*session.Session{old, next, third} {
		defer s.Close(ctx)
	}

	_, _ = old.Acquire(ctx)
	fmt.Println("handed over:", old.HandOver(ctx, next.ID()) == nil)
	ok, _ := third.Acquire(ctx)
	fmt.Println("third:", ok)
	ok, _ = next.Acquire(ctx)
	fmt.Println("next:", ok)
	fmt.Println("alive:", old.CheckAlive(), next.CheckAlive())
	// Output:
	// handed over: true
	// third: false
	// next: true
	// alive: false true
}

// Run waits until the lease is free, works while it holds the lease, and then releases the lease.
func ExampleRun() {
	ctx := context.Background()
	store := memory.New(nil).Authority()
	s, _ := session.New(store, "indexer/leader", nil)
	defer s.Close(ctx)
	err := session.Run(ctx, s, func(ctx context.Context, tok lease.Token) error {
		fmt.Println("working under", tok)
		return nil // ctx ends if the lease is lost
	}, nil)
	fmt.Println("done:", err, s.CheckAlive())
	// Output:
	// working under 00000000000000000001
	// done: <nil> false
}

// WhileHeld gives a context that ends with the lease.
func ExampleSession_WhileHeld() {
	ctx := context.Background()
	s, _ := session.New(memory.New(nil).Authority(), "jobs/nightly", nil)
	defer s.Close(ctx)
	_, _ = s.Acquire(ctx)
	held, cancel := s.WhileHeld(ctx)
	defer cancel()
	fmt.Println("held:", held.Err() == nil)
	_ = s.Release(ctx)
	<-held.Done()
	fmt.Println("because:", context.Cause(held))
	// Output:
	// held: true
	// because: the lease was released
}
