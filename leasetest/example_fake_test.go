package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// Index is the code under test. It indexes documents while it holds the lease.
func Index(ctx context.Context, l lease.Lease, index func() error) error {
	return session.Run(ctx, l, func(ctx context.Context, _ lease.Token) error {
		for ctx.Err() == nil {
			if err := index(); err != nil {
				return err
			}
		}
		return nil
	}, &session.RunOptions{AcquireInterval: time.Millisecond})
}

// A unit test of code that takes a lease. The first Acquire finds that another holder has the lease, and
// the second one gets it. The lease is lost while the third document is indexed.
func ExampleFake() {
	var l leasetest.Fake // in a test: func TestIndexStops(t *testing.T)
	l.Next(false, nil)
	indexed := 0
	err := Index(context.Background(), &l, func() error {
		if indexed++; indexed == 3 {
			l.Lose(lease.ErrExpired)
		}
		return nil
	})
	fmt.Println(indexed, "indexed; lost:", errors.Is(err, lease.ErrLost))
	fmt.Println(l.Calls())
	// Output:
	// 3 indexed; lost: true
	// [Acquire Wait Acquire WhileHeld Release]
}
