package leasetest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
)

// A Clerk is a simple authority. It executes one request at a time, which lease.Step decides.
type Clerk struct {
	start   time.Time // the time is measured from start, because a wall clock can be set back
	mu      sync.Mutex
	records map[string]lease.Record
}

func (c *Clerk) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	if err := ctx.Err(); err != nil {
		return lease.Result{}, fail(err)
	}
	if err := lease.CheckName(name); err != nil {
		return lease.Result{}, fail(err)
	}
	if err := (lease.Limits{}).Check(req); err != nil {
		return lease.Result{}, fail(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.start.Add(time.Since(c.start)).Round(0).UTC()
	next, err := lease.Step(c.records[name], req, now)
	res := lease.Result{Record: next, Now: now, MinRemaining: next.Remaining(now)}
	if err != nil {
		return res, fail(err)
	}
	c.records[name] = next
	return res, nil
}

func NewClerk(testing.TB) lease.Authority {
	return &Clerk{start: time.Now(), records: map[string]lease.Record{}}
}

// One call tests your own authority against SPEC.md and against all test vectors of Vectors.
func ExampleTestAuthority() {
	_ = func(t *testing.T) { // in a file of tests: func TestClerk(t *testing.T)
		leasetest.TestAuthority(t, NewClerk, &leasetest.Options{
			Bubble: true, // a Clerk runs in this process and reads the time from package time
		})
	}
}
