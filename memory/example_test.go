package memory_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// Two holders contend for one lease in one Store.
func Example() {
	ctx := context.Background()
	store := memory.New(nil)
	first, err := store.Lease("jobs/nightly", &session.Options{Owner: "worker-1"})
	if err != nil {
		log.Fatal(err)
	}
	second, err := store.Lease("jobs/nightly", &session.Options{Owner: "worker-2"})
	if err != nil {
		log.Fatal(err)
	}

	token, ok, err := first.AcquireWithToken(ctx)
	fmt.Println("worker-1:", token, ok, err)
	token, ok, err = second.AcquireWithToken(ctx)
	fmt.Println("worker-2:", token, ok, err)

	if err := first.Close(ctx); err != nil {
		log.Fatal(err)
	}
	token, ok, err = second.AcquireWithToken(ctx)
	fmt.Println("worker-2:", token, ok, err)
	if err := second.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// worker-1: 00000000000000000001 true <nil>
	// worker-2:  false <nil>
	// worker-2: 00000000000000000002 true <nil>
}

// An operator lists the leases, and breaks one of them with a grace period.
func ExampleStore_List() {
	ctx := context.Background()
	store := memory.New(&memory.Options{Floor: lease.TokenOf(41)})
	l, err := store.Lease("indexer/leader", &session.Options{Owner: "worker-1"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := l.Acquire(ctx); err != nil {
		log.Fatal(err)
	}
	show := func() {
		for e, err := range store.List(ctx, "indexer/") {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(e.Name, e.Record.State, e.Record.Owner, e.Record.Remaining(e.Now).Round(time.Second), e.Record.Token())
		}
	}
	show()
	if _, err := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(10*time.Second)); err != nil {
		log.Fatal(err)
	}
	show()
	if err := l.Close(ctx); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// indexer/leader leased worker-1 30s 00000000000000000042
	// indexer/leader breaking worker-1 10s 00000000000000000042
	// indexer/leader available worker-1 0s 00000000000000000042
}
