// Package gocron lets several schedulers of [github.com/go-co-op/gocron/v2] share their jobs: a [Locker]
// takes a lease for each run of a job, and an [Elector] lets the process that holds one lease run all of
// them. The leases can be at any authority.
//
// gocron itself gives a job a context that knows nothing of a lock. The context of a job that is made with
// [Locker.Task] or [Elector.Task] ends in the stop window of its lease, before another process can have
// it, and carries the fencing token: see [Token].
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
