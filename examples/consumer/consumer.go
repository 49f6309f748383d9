// Package consumer is code that takes a lease.Lease, with two tests. One scripts the lease with a
// leasetest.Fake. The other cuts the network to the store of the leases.
package consumer

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Index calls put with the fencing token once a second for as long as it holds the lease, and
// returns how often. It returns when ctx ends, when the lease is lost, and with an error of put.
func Index(ctx context.Context, l lease.Lease, put func(context.Context, lease.Token) error) (n int, err error) {
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			if err := put(ctx, tok); err != nil {
				return err
			}
			n++
		}
		return nil
	}, nil)
	return n, err
}
