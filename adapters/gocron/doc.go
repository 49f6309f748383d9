// Package gocron lets several schedulers of [github.com/go-co-op/gocron/v2] share their jobs. With a
// [Locker], each run of a job acquires a lease of its own. With an [Elector], the process that holds one
// lease runs all jobs. The leases can be in any store.
//
// gocron passes a context to each job, but does not cancel it when a lock is lost. If you create the job with
// [Locker.Task] or [Elector.Task], its context ends before another process can acquire the lease. The context
// also carries the fencing token: see [Token].
package gocron

import (
	"context"

	"github.com/fencedlease/lease"
)

type tokenKey struct{}

// Token returns the fencing token of the lease under which a job runs. The job should send it with every
// write. If ctx is not the context of a job of this package, Token returns an empty token.
func Token(ctx context.Context) lease.Token {
	tok, _ := ctx.Value(tokenKey{}).(lease.Token)
	return tok
}

func withToken(ctx context.Context, tok lease.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, tok)
}
