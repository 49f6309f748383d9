// Package gocron lets several schedulers of [github.com/go-co-op/gocron/v2] share their jobs: a [Locker]
// acquires a lease for each run of a job, and with an [Elector], the process that holds one lease runs
// all jobs. The leases can be at any authority.
//
// The context that gocron itself passes to a job does not end when a lock is lost. If you make the job
// with [Locker.Task] or [Elector.Task], its context ends in the stop window of the lease, before another
// process can have the lease. The context also carries the fencing token: see [Token].
package gocron

import (
	"context"

	"github.com/fencedlease/lease"
)

type tokenKey struct{}

// Token returns the fencing token of the lease under which a job runs. Send it with every write. The
// result is empty if ctx is not the context of a job of this package.
func Token(ctx context.Context) lease.Token {
	tok, _ := ctx.Value(tokenKey{}).(lease.Token)
	return tok
}

func withToken(ctx context.Context, tok lease.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, tok)
}
