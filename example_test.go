package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// An operator breaks a lease, and gives its holder 40 s to finish. The holder watches the record, so it
// learns of the break at once, finishes its work early, and releases the lease.
func ExampleBreak() {
	ctx := context.Background()
	store := memory.New(nil)
	l, err := store.Lease("jobs/nightly", &session.Options{Duration: time.Minute, Watch: true})
	if err != nil {
		log.Fatal(err)
	}
	released := make(chan error)
	l.OnBreaking(func(time.Time) { released <- l.Release(ctx) }) // when the work is finished
	if ok, err := l.Acquire(ctx); !ok {
		log.Fatal("not acquired: ", err)
	}

	left, err := lease.Break(ctx, store.Authority(), "jobs/nightly", lease.Grace(40*time.Second))
	fmt.Println("locked for at most", left, err)
	fmt.Println("released:", <-released)
	_, err = lease.Break(ctx, store.Authority(), "jobs/nightly", lease.Grace(40*time.Second))
	fmt.Println("nothing to break:", errors.Is(err, lease.ErrNotPresent))
	if err := l.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// locked for at most 40s <nil>
	// released: <nil>
	// nothing to break: true
}

// An operator asks who has the lease, and for how long.
func ExampleInspect() {
	ctx := context.Background()
	store := memory.New(nil)
	show := func() {
		res, err := lease.Inspect(ctx, store.Authority(), "indexer/leader")
		if err != nil {
			log.Fatal(err)
		}
		left := res.MaxRemaining().Round(10 * time.Second)
		fmt.Printf("%v, owner %q, about %v left, token %q\n", res.Record.State, res.Record.Owner, left, res.Record.Token())
	}
	show()
	l, err := store.Lease("indexer/leader", &session.Options{Owner: "worker-1"})
	if err != nil {
		log.Fatal(err)
	}
	if ok, err := l.Acquire(ctx); !ok {
		log.Fatal("not acquired: ", err)
	}
	show()
	if err := l.Close(ctx); err != nil { // releases the lease
		log.Fatal(err)
	}
	show()
	// Output:
	// available, owner "", about 0s left, token ""
	// leased, owner "worker-1", about 30s left, token "00000000000000000001"
	// available, owner "worker-1", about 0s left, token "00000000000000000001"
}

// The work runs under a context that ends with the lease. Here an operator ends the lease at once, and the
// holder learns of the break because it watches the record.
func ExampleWhileHeld() {
	ctx := context.Background()
	store := memory.New(nil)
	l, err := store.Lease("jobs/nightly", &session.Options{Watch: true})
	if err != nil {
		log.Fatal(err)
	}
	tok, ok, err := lease.AcquireWithToken(ctx, l)
	if !ok {
		log.Fatal("not acquired: ", err)
	}

	work := func(ctx context.Context) error {
		fmt.Println("working with token", tok)
		if _, err := lease.Break(ctx, store.Authority(), "jobs/nightly", lease.Grace(0)); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	held, done := lease.WhileHeld(ctx, l)
	err = work(held)
	done() // the work has stopped
	fmt.Println("lost:", errors.Is(err, lease.ErrLost), "broken:", errors.Is(err, lease.ErrBroken))
	if err := l.Close(ctx); err != nil { // also releases the lease if it is still held
		log.Fatal(err)
	}
	// Output:
	// working with token 00000000000000000001
	// lost: true broken: true
}
