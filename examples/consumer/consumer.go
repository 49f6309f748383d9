// Package consumer is an example of code that uses a lease.Lease, with two tests. The first test uses a
// leasetest.Fake, whose behavior the test decides, instead of a real lease. In the second test, the network
// between the holder and the store fails.
package consumer

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Index waits until it holds the lease, and then calls put once a second with the fencing token of the lease.
// It returns when ctx is done, when the lease is lost, or when put returns an error. The result n is the
// number of successful calls of put.
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
