package provider_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/provider"
)

// Independent parts of a program ask a Registry for the lease of a job.
func Example() {
	ctx := context.Background()
	leases, err := provider.New(&provider.Settings{Duration: 15 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	authority := memory.New(nil).Authority()
	if err := leases.Register("memory", provider.FromAuthority(authority, nil)); err != nil {
		log.Fatal(err)
	}

	one, _ := leases.Lease("memory", "nightly", "worker-1")
	same, _ := leases.Lease("memory", "nightly", "worker-1")
	two, _ := leases.Lease("memory", "nightly", "worker-2")
	fmt.Println("same instance:", one == same, one == two)

	ok, err := one.Acquire(ctx)
	fmt.Println("worker-1:", ok, err)
	ok, err = two.Acquire(ctx)
	fmt.Println("worker-2:", ok, err)

	_, err = leases.Lease("redis", "nightly", "worker-1")
	fmt.Println(err)
	fmt.Println("closed:", leases.Close(ctx), one.CheckAlive())
	// Output:
	// same instance: true false
	// worker-1: true <nil>
	// worker-2: false <nil>
	// kind = "redis": must be one of the registered kinds: "memory"
	// closed: <nil> false
}
